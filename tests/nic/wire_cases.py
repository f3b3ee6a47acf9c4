# SPDX-License-Identifier: BSD-3-Clause
"""What a card sends: captured by QEMU outside of the guest, and read by others than uroce."""

import contextlib
import signal
import subprocess

from rig import ROOT, Failure, Process, af_packet

MGID = {"v4": "0:0:0:0:0:0:0:0:0:0:255:255:239:7:8:9",
        "v6": "255:21:0:0:0:0:0:0:0:0:0:0:7:8:9:10"}


def captured(wire):
    """The frames of the cable, in a file."""
    path = wire.rig.folder / "wire.pcap"
    path.unlink(missing_ok=True)
    # QEMU does not capture what has several queues
    return by_linux(wire, path) if wire.nic.queues > 1 else by_qemu(wire, path)


@contextlib.contextmanager
def by_linux(wire, path):
    program = Process(wire.rig, "dumpcap", [*wire.rig.inside("a"), "dumpcap", "-q", "-i", wire.tap,
                                            "-B", "64", "-w", str(path)])
    try:
        program.expect("File:", 30)
        yield path
    finally:
        program.signal(signal.SIGINT)
        program.wait(30)


@contextlib.contextmanager
def by_qemu(wire, path):
    wire.guest.monitor.do("object-add", **{"qom-type": "filter-dump", "id": "dump",
                                           "netdev": wire.guest.card.wire, "file": str(path),
                                           "maxlen": 65536})
    try:
        yield path
    finally:
        wire.guest.monitor.do("object-del", id="dump")


def tshark(path, show, *options):
    """The frames that a display filter chooses, a line each."""
    done = subprocess.run(["tshark", "-n", "-r", path, "-o", "ip.check_checksum:TRUE",
                           "-o", "udp.check_checksum:TRUE", "-Y", show, *options],
                          capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failure(f"tshark: {done.stderr.strip()[-200:]}")
    return done.stdout.splitlines()


def right(path, family):
    """Every RoCE frame has the right ICRC, lengths and checksums, by two independent readers."""
    done = subprocess.run([str(ROOT / "tests/vectors/verify_icrc.py"), path], capture_output=True,
                          text=True, timeout=300)
    if done.returncode != 0:
        raise Failure(f"ICRC: {(done.stdout + done.stderr).strip()[-200:]}")
    roce = "udp.dstport == 4791"
    bad = tshark(path, f"{roce} && (ip.checksum.status == 0 || udp.checksum.status == 0 || "
                       f"udp.length.bad || _ws.malformed)")
    if bad:
        raise Failure(f"tshark finds fault with {len(bad)} frames: {bad[0].strip()}")
    address = {"v4": "ip.src == 10.7.0.2", "v6": "ipv6.src == fd07::2"}[family]
    sent = len(tshark(path, f"{roce} && infiniband && {address}"))
    if sent == 0:
        raise Failure("the capture has no RoCE frame of the card")
    return f"{sent} frames of the card"


def frames(family):
    def run(wire):
        with captured(wire) as path:
            for line in ("ib_write_bw -s 20000 -n 20 -b", "ib_read_bw -s 9000 -n 20 -b",
                         "ib_atomic_bw -n 50", "ib_send_bw -s 777 -n 40 -b"):
                wire.pair(line, family, "client")
        return right(path, family)
    return run


def vlan(wire):
    """Both engines tag by themselves."""
    wire.rig.place["v"] = "a"
    engine = wire.rig.engine("v", [af_packet(wire.tap, 4200)],
                             ["--port", "net_af_packet0", "--mtu", "4200", "--vlan", "7",
                              "--ip", "10.7.1.1/24,fd07:1::1/64"])
    try:
        with captured(wire) as path:
            remark = wire.measured("ib_write_bw -s 20000 -n 40 -b", "v4", "client", side="v")
            wire.pair("ib_send_bw -s 20000 -n 40", "v6", "server", side="v")
        for address in ("ip.src == 10.7.1.2", "ipv6.src == fd07:1::2"):
            if not tshark(path, f"vlan.id == 7 && udp.dstport == 4791 && {address}"):
                raise Failure(f"no frame of the card has the tag and {address}")
        return remark
    finally:
        del wire.rig.engines["v"]
        engine.end()


def multicast(family, role):
    """`role`: the guest's. A server joins the group and counts what it hears."""
    def run(wire):
        return wire.measured(f"ib_send_bw -c UD -g -M {MGID[family]} -s 1024 -n 60", family, role)
    return run
