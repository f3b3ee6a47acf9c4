# SPDX-License-Identifier: BSD-3-Clause
"""Frames that a card sends: captured by QEMU outside the guest, and checked by programs other than uroce."""

import contextlib
import signal
import subprocess
import sys

from inject import cnp
from nic_guest import SOCKET
from rig import ROOT, Failure, Process, af_packet, wait_until

MGID = {"v4": "0:0:0:0:0:0:0:0:0:0:255:255:239:7:8:9",
        "v6": "255:21:0:0:0:0:0:0:0:0:0:0:7:8:9:10"}


def captured(wire):
    """The frames of the cable, in a file."""
    path = wire.rig.folder / "wire.pcap"
    path.unlink(missing_ok=True)
    # QEMU does not capture on a device with several queues
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
    """The frames that a display filter chooses, one line each."""
    done = subprocess.run(["tshark", "-n", "-r", path, "-o", "ip.check_checksum:TRUE",
                           "-o", "udp.check_checksum:TRUE", "-Y", show, *options],
                          capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failure(f"tshark: {done.stderr.strip()[-200:]}")
    return done.stdout.splitlines()


CARD = {"v4": "ip.src == 10.7.0.2", "v6": "ipv6.src == fd07::2"}
CARD_IN_VLAN = {"v4": "ip.src == 10.7.1.2", "v6": "ipv6.src == fd07:1::2"}


def right(path, source):
    """Every RoCE frame has the right ICRC, lengths and checksums, by two independent readers. Returns how many of them
    the display filter `source` selects."""
    done = subprocess.run([str(ROOT / "tests/vectors/verify_icrc.py"), path], capture_output=True,
                          text=True, timeout=300)
    if done.returncode != 0:
        raise Failure(f"ICRC: {(done.stdout + done.stderr).strip()[-200:]}")
    roce = "udp.dstport == 4791"
    bad = tshark(path, f"{roce} && (ip.checksum.status == 0 || udp.checksum.status == 0 || "
                       f"udp.length.bad || _ws.malformed)")
    if bad:
        raise Failure(f"tshark finds fault with {len(bad)} frames: {bad[0].strip()}")
    sent = len(tshark(path, f"{roce} && infiniband && {source}"))
    if sent == 0:
        raise Failure(f"the capture has no RoCE frame of the card with {source}")
    return f"{sent} frames of the card"


def frames(family):
    def run(wire):
        with captured(wire) as path:
            for line in ("ib_write_bw -s 20000 -n 20 -b", "ib_read_bw -s 9000 -n 20 -b",
                         "ib_atomic_bw -n 50", "ib_send_bw -s 777 -n 40 -b"):
                wire.pair(line, family, "client")
        return right(path, CARD[family])
    return run


@contextlib.contextmanager
def engine_in_vlan(wire):
    """An engine of this host, which tags in software, as side v."""
    wire.rig.place["v"] = "a"
    engine = wire.rig.engine("v", [af_packet(wire.tap, 4200)],
                             ["--port", "net_af_packet0", "--mtu", "4200", "--vlan", "7",
                              "--ip", "10.7.1.1/24,fd07:1::1/64"])
    try:
        yield
    finally:
        del wire.rig.engines["v"]
        engine.end()


def vlan(wire):
    """Both engines tag in software."""
    with engine_in_vlan(wire), captured(wire) as path:
        remark = wire.measured("ib_write_bw -s 20000 -n 40 -b", "v4", "client", side="v")
        wire.pair("ib_send_bw -s 20000 -n 40", "v6", "server", side="v")
    for source in CARD_IN_VLAN.values():
        right(path, f"vlan.id == 7 && {source}")
    return remark


# -- offloads ------------------------------------------------------------------------------------

SEND = """import socket, sys
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((sys.argv[1], 0))
for frame in sys.argv[2:]:
    out.send(bytes.fromhex(frame))
"""
COUNT = 5
OURS_MAC = "020000000101"


def to_card(wire, packet, tag=""):
    """An IPv4 packet in a frame, as hexadecimal text."""
    return f"{wire.guest.card.mac.replace(':', '')}{OURS_MAC}{tag}0800{packet.hex()}"


def arrive(wire, frames, expected):
    """Sends frames to the card, each COUNT times. The counter of each of these reasons must grow by that many."""
    before = wire.guest.statistics()["by_reason"]
    subprocess.run([*wire.rig.inside("a"), sys.executable, "-c", SEND, wire.tap, *(frames * COUNT)],
                   check=True, timeout=30)

    def counted():
        now = wire.guest.statistics()["by_reason"]
        return all(now[reason] - before[reason] == COUNT for reason in expected)
    wait_until(f"{COUNT} more frames under each of {', '.join(expected)}", 30, counted, 0.2)


def says_offload(wire):
    wire.guest.says(wire.guest.engine, f"offload {wire.nic.offload}", 10)


def offloads(wire):
    """If the card makes the IPv4 checksum, the driver gets frames with 0 in its field."""
    says_offload(wire)
    return right_both_ways(wire)


def offloads_by_itself(wire):
    """Without --offload a card makes the checksum if its driver announces that, and the engine says so."""
    if "ipv4-cksum (tx port" in wire.nic.offload:
        wire.guest.says(wire.guest.engine, "offload auto: ipv4-cksum (tx port, rx port)", 10)
    else:
        says_no_offload(wire)
    return right_both_ways(wire)


def no_offloads(wire):
    says_no_offload(wire)
    return right_both_ways(wire)


def says_no_offload(wire):
    """It serves already, and would have reported it before."""
    output = wire.guest.output(wire.guest.engine)[1]
    if "serving" not in output or "offload" in output:
        raise Failure(f"the guest's engine said: {output.strip()[-200:]}")


def right_both_ways(wire):
    """Frames that leave are right; of those that arrive, a wrong IPv4 checksum is dropped."""
    with captured(wire) as path:
        for line in ("ib_write_bw -s 20000 -n 20 -b", "ib_read_bw -s 9000 -n 20 -b", "ib_atomic_bw -n 50",
                     "ib_send_bw -s 777 -n 40 -b"):
            wire.pair(line, "v4", "client")
        wire.pair("ib_send_bw -s 777 -n 40 -b", "v6", "client")
    sent = right(path, CARD["v4"])
    right(path, CARD["v6"])
    good = cnp("10.7.0.1", "10.7.0.2", 0xfffff0, 0)
    wrong = good[:10] + bytes([good[10] ^ 1]) + good[11:]
    arrive(wire, [to_card(wire, good), to_card(wire, wrong)], ["qpn_unknown", "ip_checksum"])
    return sent


def vlan_offload(wire):
    """The card inserts and removes the tag; priorities stay, and frames of other VLANs are not received."""
    says_offload(wire)
    with engine_in_vlan(wire), captured(wire) as path:
        wire.pair("ib_write_bw -s 20000 -n 40 -b --sl 5", "v4", "client", side="v")
        wire.pair("ib_send_bw -s 20000 -n 40 -b", "v6", "server", side="v")
    sent = right(path, f"vlan.id == 7 && vlan.priority == 5 && {CARD_IN_VLAN['v4']}")
    right(path, f"vlan.id == 7 && {CARD_IN_VLAN['v6']}")
    bare = tshark(path, "udp.dstport == 4791 && !vlan")
    if bare:
        raise Failure(f"{len(bare)} RoCE frames have no tag")
    packet = cnp("10.7.1.1", "10.7.1.2", 0xfffff0, 0)
    # virtio-net drops the other VLAN by itself
    others = [] if wire.nic.driver == "net_virtio" else [to_card(wire, packet, "81000008")]
    arrive(wire, [to_card(wire, packet, "8100a007"), *others], ["qpn_unknown", *["vlan_tag" for _ in others]])
    return sent


def multicast(family, role):
    """`role`: the guest's. A server joins the group and counts the datagrams that it receives."""
    def run(wire):
        return wire.measured(f"ib_send_bw -c UD -g -M {MGID[family]} -s 1024 -n 60", family, role)
    return run


JOINED, ALIKE, OTHER = "239.7.8.9", "238.135.8.9", "239.7.8.200"  # ALIKE has the Ethernet address of JOINED


def comes(wire, group):
    """Whether frames to the Ethernet address of a group reach the engine. Their group is ALIKE or OTHER, which no
    program joins, so the engine counts those that it sees as `address_foreign`. Frames to the card follow them."""
    low = [int(part) for part in group.split(".")]
    mac = f"01005e{low[1] & 127:02x}{low[2]:02x}{low[3]:02x}"
    theirs = f"{mac}{OURS_MAC}0800{cnp('10.7.0.1', group, 0xffffff, 0).hex()}"
    before = wire.guest.statistics()["by_reason"]
    arrive(wire, [theirs, to_card(wire, cnp("10.7.0.1", "10.7.0.2", 0xfffff0, 0))], ["qpn_unknown"])
    count = wire.guest.statistics()["by_reason"]["address_foreign"] - before["address_foreign"]
    if count not in (0, COUNT):
        raise Failure(f"{count} of {COUNT} frames for {group} came")
    return count > 0


def expect_coming(wire, when, joined):
    """Cards without a filter that the driver can set let all groups through."""
    got = comes(wire, ALIKE), comes(wire, OTHER)
    wanted = (joined or not wire.nic.filters, not wire.nic.filters)
    if got != wanted:
        raise Failure(f"{when}: frames for the group and for another one came: {got}, not {wanted}")


def join(wire):
    number = wire.guest.verbs(["stdbuf", "-oL", "mckey", "-m", JOINED, "-C", "10", "-S", "512", "-b", "10.7.0.2"])
    wait_until("mckey's group", 30, lambda: "joined dgid" in wire.guest.output(number)[1], 0.1)
    return number


def leave(wire, number):
    wire.guest.signal(number, signal.SIGKILL)
    wire.guest.finish(number, 30)
    wait_until("the end of the group", 30, lambda: comes(wire, ALIKE) == (not wire.nic.filters), 0.2)


def multicast_filter(wire):
    """The card lets a joined group through and no other, also after its link was down, and after the engine was killed."""
    expect_coming(wire, "at first", False)
    number = join(wire)
    expect_coming(wire, "joined", True)
    wire.guest.set_link(False)
    wait_until("the link's end", 30, lambda: not wire.guest.has_link(SOCKET), 0.1)
    wire.guest.set_link(True)
    wait_until("the link", 60, lambda: wire.guest.has_link(SOCKET), 0.1)
    expect_coming(wire, "after the link was down", True)
    leave(wire, number)
    expect_coming(wire, "left", False)
    number, setup = join(wire), wire.guest.setup
    wire.guest.end_engine(signal.SIGKILL)
    wire.guest.signal(number, signal.SIGKILL)
    wire.guest.finish(number, 30)
    wire.guest.start_engine(setup)
    expect_coming(wire, "after the engine was killed", False)
    return "groups by the card's filter" if wire.nic.filters else "all groups: the driver takes no list"
