# SPDX-License-Identifier: BSD-3-Clause
"""Engines whose ports do a part of the work (--offload): the programs work, and the wire is the same as without.
net_af_packet supports tags, net_tap checksums, net_memif neither; for cards see tests/nic."""

import signal
import subprocess
import sys

import kernel_interface
import rig as rigs
from programs import run_pair
from rig import ROOT, Failure, Process, case_of
from wires import dissect

CASES = []
case = case_of(CASES)
PAIRS = ("ib_write_bw -s 4001 -n 20", "ib_read_bw -s 4001 -n 20", "ib_send_bw -c UD -s 1001 -n 20")
FIELDS = ("udp.dstport", "vlan.id", "vlan.priority", "ip.checksum.status")


def says(rig, text):
    for engine in rig.engines.values():
        engine.expect(f"offload {text}", 10)


def same_on_the_wire(rig, family, lines=PAIRS):
    """RoCE frames of these pairs, captured by tshark; every ICRC and every IPv4 checksum is right."""
    path = rig.folder / f"wire-{family}.pcapng"
    # not sniff.py: the kernel takes tags out of frames, and dumpcap puts them back
    capture = Process(rig, "dumpcap", [*rig.inside("b"), "dumpcap", "-q", "-i", "wire", "-B", "64", "-w", str(path)])
    capture.expect("File: ", 20)
    for line in lines:
        run_pair(rig, line.split(), family)
    capture.signal(signal.SIGINT)
    capture.wait(30)
    done = subprocess.run([sys.executable, ROOT / "tests/vectors/verify_icrc.py", path], capture_output=True,
                          text=True, timeout=60)
    if done.returncode != 0:
        raise Failure((done.stdout + done.stderr).strip()[-200:])
    rows = [row for row in dissect(path, *FIELDS, options=("-o", "ip.check_checksum:TRUE"))
            if row["udp.dstport"] == "4791"]
    wrong = [row for row in rows if row["ip.checksum.status"] not in ("1", "Good") and family == "v4"]
    if not rows or wrong:
        raise Failure(f"{len(wrong)} of {len(rows)} frames have a wrong checksum: {wrong[:1]}")
    return rows


@case
def ipv4_checksum(build):
    """net_tap makes and checks the checksums, if it is asked to."""
    with rigs.tap(build, ["--offload", "ipv4-cksum"]) as rig:
        says(rig, r"ipv4-cksum \(tx port, rx port\)")
        rows = same_on_the_wire(rig, "v4")
        same_on_the_wire(rig, "v6")
        return f"{len(rows)} frames"


@case
def a_software_port_by_itself(build):
    """net_tap announces checksums, but makes them in software: the engine does not ask for them unless the user does."""
    with rigs.tap(build, []) as rig:
        rows = same_on_the_wire(rig, "v4")
        said = [line for engine in rig.engines.values() for line in engine.output().splitlines() if "offload" in line]
        if said:
            raise Failure(f"an engine said: {said[0]}")
        return f"{len(rows)} frames"


@case
def vlan(build):
    """The port of one engine tags; the other engine tags in software."""
    tagged = ["--vlan", "7"]
    with rigs.veth(build, 4200, [*tagged, "--offload", "all"], tagged) as rig:
        rig.engines["a"].expect(r"offload ipv4-cksum \(tx software, rx software\), vlan \(tx port, rx port\)", 10)
        for family in ("v4", "v6"):
            rows = same_on_the_wire(rig, family, [f"{line} --sl 3" for line in PAIRS])
            strange = [row for row in rows if (row["vlan.id"], row["vlan.priority"]) not in (("7", "3"), ("7", "0"))]
            if strange or not any(row["vlan.priority"] == "3" for row in rows):
                raise Failure(f"{len(strange)} of {len(rows)} frames have another tag: {strange[:1]}")
        return f"{len(rows)} frames"


@case
def vlan_beside_the_kernel(build):
    """The port also inserts and removes the tags of the kernel's frames."""
    with kernel_interface.on_veth(build, 1500, ["--vlan", "7", "--offload", "vlan"]) as rig:
        says(rig, r"vlan \(tx port, rx port\)")
        kernel_interface.pings(rig)
        return kernel_interface.both(rig)


@case
def a_port_without(build):
    """net_memif announces no offload, so software does everything."""
    with rigs.memif(build, ["--offload", "all"]) as rig:
        says(rig, r"ipv4-cksum \(tx software, rx software\), vlan \(tx software, rx software\)")
        return run_pair(rig, ["ib_write_bw", "-s", "65536", "-n", "100"], "v4")
