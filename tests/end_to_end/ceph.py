# SPDX-License-Identifier: BSD-3-Clause
"""Ceph with its RDMA messenger: a monitor and a store in memory, and a client that writes and reads objects."""

import re
import shutil

from rig import ADDRESS, Failure, Skipped, wait_until

PLACE = "netdev4200"  # Ceph looks for its address on the interfaces of the namespace

OSD = "11111111-1111-1111-1111-111111111111"
SETTINGS = """[global]
fsid = a7f64266-0894-4f1e-a635-d0aeaca0e993
mon_host = v1:{address}:6789
mon_initial_members = a
public_network = {address}/32
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_type = async+rdma
ms_bind_msgr2 = false
ms_async_rdma_device_name = uroce0
ms_async_rdma_cm = {cm}
ms_async_rdma_type = {kind}
ms_async_rdma_send_buffers = 256
ms_async_rdma_receive_buffers = 8192
ms_async_rdma_receive_queue_len = 1024
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_crush_chooseleaf_type = 0
osd_objectstore = memstore
osd_crush_update_on_start = false
osd_class_update_on_start = false
mon_data_avail_crit = 1
run_dir = {folder}
log_file = {folder}/$name.log
mon_cluster_log_file = {folder}/cluster.log
admin_socket = {folder}/$name.asok
mon_data = {folder}/mon
osd_data = {folder}/osd
keyring = {folder}/keyring
setuser_match_path =
"""


class Cluster:
    """Daemons on the first side, and programs of Ceph on both, in a folder of their own."""

    def __init__(self, rig, cm):
        self.rig = rig
        self.folder = rig.folder / "ceph"
        for name in ("mon", "osd"):
            (self.folder / name).mkdir(parents=True)
        self.settings = self.folder / "ceph.conf"
        self.settings.write_text(SETTINGS.format(
            address=ADDRESS[rig.sides[0]][0], folder=self.folder, cm=str(cm).lower(),
            kind="iwarp" if cm else "ib"))

    def begin(self, side, program, *words):
        gid = "0000:0000:0000:0000:0000:ffff:0a07:000" + ADDRESS[side][0][-1]
        return self.rig.program(side, [program, "-c", str(self.settings), *words], name=program,
                                env={"CEPH_ARGS": f"--ms_async_rdma_local_gid={gid}"})

    def run(self, side, program, *words, limit=90):
        process = self.begin(side, program, *words)
        try:
            return process.succeed(limit)
        finally:
            process.end()

    def make(self):
        """The files of a cluster of one monitor."""
        address, side = ADDRESS[self.rig.sides[0]][0], self.rig.sides[0]
        keyring, map_of_monitors = str(self.folder / "keyring"), str(self.folder / "map")
        self.run(side, "ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap",
                 "mon", "allow *")
        self.run(side, "monmaptool", "--create", "--fsid", "a7f64266-0894-4f1e-a635-d0aeaca0e993",
                 "--addv", "a", f"[v1:{address}:6789]", map_of_monitors)
        self.run(side, "ceph-mon", "--mkfs", "-i", "a", "--monmap", map_of_monitors, "--keyring",
                 keyring)


def accepts(cluster, side, monitor, words):
    """A monitor refuses commands until it has elected itself, and those of a client that has not read its map
    yet (EPERM, wrong fsid), over TCP as well."""
    if not monitor.alive():
        raise Failure(f"ceph-mon ended with {monitor.popen.returncode}: {monitor.tail()}")
    process = cluster.begin(side, "ceph", "--connect-timeout", "20", *words)
    try:
        return process.wait(90) == 0
    finally:
        process.end()


def command(cluster, side, monitor, *words):
    wait_until(f"the monitor's consent to {words}", 120,
               lambda: accepts(cluster, side, monitor, words), 0.5)


def bench(cluster, side, *words):
    text = cluster.run(side, "rados", "-p", "pool", "bench", *words)
    done = re.search(r"^Total (?:writes|reads) made: +([1-9]\d*)", text, re.MULTILINE)
    rate = re.search(r"^Bandwidth \(MB/sec\): +(\S+)", text, re.MULTILINE)
    if not done or not rate:
        raise Failure(f"rados bench {words}: {text[-200:]!r}")
    return f"{words[1]} {float(rate[1]):.0f} MB/s"


def ceph(rig, cm):
    if shutil.which("ceph-osd") is None:
        raise Skipped("ceph-osd is not installed")
    cluster, daemons = Cluster(rig, cm), []
    side, client = rig.sides
    try:
        cluster.make()
        daemons.append(cluster.begin(side, "ceph-mon", "-f", "-i", "a"))
        command(cluster, client, daemons[0], "osd", "new", OSD)
        cluster.run(side, "ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", OSD)
        daemons.append(cluster.begin(side, "ceph-osd", "-f", "-i", "0"))
        command(cluster, client, daemons[0], "osd", "crush", "add", "osd.0", "1", "root=default")
        command(cluster, client, daemons[0], "osd", "pool", "create", "pool", "4")
        said = [bench(cluster, client, "3", "write", "--no-cleanup", "-t", "4", "-b", "262144"),
                bench(cluster, client, "3", "rand", "-t", "4")]
        if bool(rig.connection_ids(side)) != cm:
            raise Failure(f"ids of rdma_cm: {rig.connection_ids(side)}")
    finally:
        for daemon in reversed(daemons):
            daemon.end()
        shutil.rmtree(cluster.folder, ignore_errors=True)
    rig.check_healthy()
    return ", ".join(said)


def cases():
    yield PLACE, "ceph", lambda rig: ceph(rig, False), False
    yield PLACE, "ceph-rdma_cm", lambda rig: ceph(rig, True), False
