# SPDX-License-Identifier: BSD-3-Clause
"""An engine as others see it: its device, its answers on the network, its frames on the wire."""

import re
import signal
import socket
import subprocess
import sys

from programs import MGID, run_pair, start_pair, table_rows
from rig import ADDRESS, ROOT, Failure, Process, sh, wait_until


def devinfo(rig):
    """ibv_devinfo -v on both sides prints the device, its port and its addresses."""
    for side in dict.fromkeys(rig.sides):
        text = rig.program(side, ["ibv_devinfo", "-v", "-d", "uroce0"]).succeed(15)
        for wanted in (r"hca_id:\s+uroce0", r"state:\s+PORT_ACTIVE", r"link_layer:\s+Ethernet",
                       rf"active_mtu:\s+{rig.mtu} ", r"atomic_cap:\s+ATOMIC_HCA",
                       rf"GID\[\s*1\]:\s+::ffff:{re.escape(ADDRESS[side][0])}",
                       rf"GID\[\s*2\]:\s+{ADDRESS[side][1]}"):
            if not re.search(wanted, text):
                raise Failure(f"ibv_devinfo of side {side} shows no '{wanted}'")
    return f"active MTU {rig.mtu}"


def answers_ping(rig):
    """The peer's kernel resolves and pings the engine's own address, IPv4 and IPv6."""
    rig.ip("b", "address", "replace", "10.7.0.99/24", "dev", "wire")
    rig.ip("b", "address", "replace", "fd07::99/64", "dev", "wire", "nodad")
    said = []
    for address in ADDRESS["a"]:
        words = [*rig.inside("b"), "ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", address]
        done = subprocess.run(words, capture_output=True, text=True, timeout=30)
        if " 0% packet loss" not in done.stdout:
            raise Failure(f"ping {address}: {done.stdout.strip().splitlines()[-1:]}")
        said.append(re.search(r"= [\d.]+/([\d.]+)/", done.stdout)[1])
    return f"v4 {said[0]} ms, v6 {said[1]} ms"


SNIFF = ROOT / "tests/end_to_end/sniff.py"


class Capture:
    """Captures packets on the cable, at each end those that it receives: with qdisc_bypass a
    capture does not see packets that its end sends."""

    def __init__(self, rig):
        self.parts = []
        self.path = rig.folder / "wire.pcapng"
        for side in "ab":
            mac = re.search(r"link/ether (\S+)", rig.ip(side, "link", "show", "wire"))[1]
            part = rig.folder / f"wire-{side}.pcap"
            process = Process(rig, "sniff", [*rig.inside(side), sys.executable, "-B", str(SNIFF),
                                             "wire", mac, str(part)])
            self.parts.append((process, part))
        for process, _ in self.parts:
            process.expect("captures", 20)

    def stop(self):
        for process, _ in self.parts:
            process.signal(signal.SIGTERM)
        for process, _ in self.parts:
            process.succeed(20)
        sh("mergecap", "-w", str(self.path), *[str(part) for _, part in self.parts])
        return self.path


def captured_pairs(rig, lines, family):
    """Runs one pair after the other under one capture; returns what the last client printed."""
    capture = Capture(rig)
    for line in lines:
        server, client = start_pair(rig, line.split(), family)
        text = client.succeed(60)
        server.succeed(15)
        if not table_rows(text):
            raise Failure(f"{line} printed no figures")
    return text, capture.stop()


def dissect(path, *fields, options=()):
    words = ["tshark", "-r", str(path), *options, "-T", "fields", "-E", "separator=;", "-E", "occurrence=f"]
    for field in fields:
        words += ["-e", field]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Failure(f"tshark: {done.stderr.strip()[-200:]}")
    return [dict(zip(fields, line.split(";"))) for line in done.stdout.splitlines()]


FIELDS = ("infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn",
          "infiniband.bth.p_key", "infiniband.bth.tver", "infiniband.bth.padcnt",
          "infiniband.reth.va", "infiniband.reth.r_key", "infiniband.reth.dmalen",
          "infiniband.aeth.syndrome", "udp.srcport", "udp.dstport", "ip.src", "ipv6.src",
          "ip.dst", "ipv6.dst", "ip.ttl", "ipv6.hlim", "eth.src", "eth.dst")


def announced(text):
    """What perftest printed: {'local': {...}, 'remote': {...}} with qpn, psn, rkey and vaddr."""
    ends = {}
    pattern = (r"(local|remote) address: LID \S+ QPN (0x\w+) PSN (0x\w+)"
               r"(?: RKey (0x\w+) VAddr (0x\w+))?")
    for end, qpn, psn, rkey, vaddr in re.findall(pattern, text):
        ends[end] = {"qpn": int(qpn, 16), "psn": int(psn, 16),
                     "rkey": int(rkey or "0", 16), "vaddr": int(vaddr or "0", 16)}
    return ends


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failure(f"{what} is {seen} instead of {wanted}")


def number(text):
    return int(text, 0) if text else None


def headers(family):
    """A WRITE of 20000 octets: tshark's fields must be those that the programs printed."""
    def run(rig):
        text, path = captured_pairs(rig, ["ib_write_bw -s 20000 -n 5"], family)
        ends = announced(text)
        rows = dissect(path, *FIELDS)
        mine = [r for r in rows if number(r["infiniband.bth.destqp"]) == ends["remote"]["qpn"]]
        acks = [r for r in rows if number(r["infiniband.bth.destqp"]) == ends["local"]["qpn"]]
        mtu = int(re.search(r"Mtu\s*:\s*(\d+)", text)[1])
        check_requests(first_of_each(mine), ends, mtu, family)
        check_answers(acks, family)
        return f"{len(mine)} requests, {len(acks)} acknowledgements as announced"
    return run


def first_of_each(rows):
    """The packets without retransmissions: on a busy machine an acknowledgement may be late."""
    seen = {}
    for row in rows:
        seen.setdefault(row["infiniband.bth.psn"], row)
    return list(seen.values())


def check_requests(rows, ends, mtu, family):
    packets = (20000 + mtu - 1) // mtu
    expect("the number of request packets", len(rows) % packets, 0)
    ip = "ip" if family == "v4" else "ipv6"
    for i, row in enumerate(rows):
        place = i % packets
        opcode = 6 if place == 0 else 8 if place == packets - 1 else 7
        expect(f"opcode of packet {i}", number(row["infiniband.bth.opcode"]), opcode)
        expect(f"PSN of packet {i}", number(row["infiniband.bth.psn"]),
               (ends["local"]["psn"] + i) & 0xFFFFFF)
        expect("P_Key", number(row["infiniband.bth.p_key"]), 0xFFFF)
        expect("TVer", number(row["infiniband.bth.tver"]), 0)
        expect("pad count", number(row["infiniband.bth.padcnt"]), 0)
        expect("UDP port", row["udp.dstport"], "4791")
        expect("UDP source port in the RoCE range", int(row["udp.srcport"]) >= 0xC000, True)
        expect("source", row[f"{ip}.src"], ADDRESS["b"][family == "v6"])
        expect("destination", row[f"{ip}.dst"], ADDRESS["a"][family == "v6"])
        if place == 0:
            expect("RETH rkey", number(row["infiniband.reth.r_key"]), ends["remote"]["rkey"])
            expect("RETH length", number(row["infiniband.reth.dmalen"]), 20000)
            expect("RETH address", number(row["infiniband.reth.va"]), ends["remote"]["vaddr"])


def check_answers(rows, family):
    ip = "ip" if family == "v4" else "ipv6"
    if not rows:
        raise Failure("no acknowledgement crossed the wire")
    for row in rows:
        expect("opcode of an answer", number(row["infiniband.bth.opcode"]), 17)
        expect("an ACK's syndrome", number(row["infiniband.aeth.syndrome"]) >> 5, 0)
        expect("source of an answer", row[f"{ip}.src"], ADDRESS["a"][family == "v6"])


ICRC_PAIRS = ("ib_write_bw -s 4001 -n 50", "ib_read_bw -s 4001 -n 50", "ib_send_bw -s 4001 -n 50",
              "ib_atomic_bw -n 50", "ib_send_bw -c UD -s 1001 -n 50",
              "ib_write_bw -c UC -s 4001 -n 50")
# RC: a WRITE, a READ and its answer, an ACK, an atomic and its answer; UC; UD.
ICRC_OPCODES = {6, 12, 13, 17, 18, 20, 38, 100}


def icrcs(family):
    """An independent script recomputes the ICRC of every packet that the operations send."""
    def run(rig):
        _, path = captured_pairs(rig, ICRC_PAIRS, family)
        done = subprocess.run([sys.executable, ROOT / "tests/vectors/verify_icrc.py", path],
                              capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise Failure((done.stdout + done.stderr).strip()[-200:])
        seen = {number(row["infiniband.bth.opcode"]) for row in dissect(path, FIELDS[0])}
        if missing := ICRC_OPCODES - seen:
            raise Failure(f"no packet of the opcodes {sorted(missing)} was captured")
        frames = re.search(r"(\d+) right", done.stdout)[1]
        return f"{frames} frames, every ICRC correct"
    return run


def malformed(rig):
    """Malformed RoCE frames are counted by reason and have no effect (hostile H-1, H-3, H-57)."""
    before = rig.statistics("a")["by_reason"]
    rig.ip("b", "address", "replace", "10.7.0.99/24", "dev", "wire")
    script = ("import socket\n"
              "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
              "bth = lambda op, v=0: bytes([op, v, 255, 255, 0, 0, 18, 52, 0, 0, 0, 1])\n"
              "for data in (b'', b'x' * 7, b'\\0' * 16, bth(4) + b'abcd', bth(0x1f) + b'\\0' * 8,\n"
              "             bth(0xff) + b'\\0' * 64, bth(6) + b'\\0' * 8, bth(4, 15) + b'\\0' * 8,\n"
              "             b'\\xff' * 1400):\n"
              "    for _ in range(10):\n"
              f"        s.sendto(data, ('{ADDRESS['a'][0]}', 4791))\n")
    done = subprocess.run([*rig.inside("b"), sys.executable, "-c", script], capture_output=True,
                          text=True, timeout=20)
    if done.returncode != 0:
        raise Failure(done.stderr.strip()[-200:])

    def counted():
        after = rig.statistics("a")["by_reason"]
        new = {reason: after[reason] - before[reason] for reason in after}
        return sum(new.values()) >= 90 and {k: v for k, v in new.items() if v}
    new = wait_until("counters for 90 bad frames", 10, counted, 0.1)
    rig.check_healthy()
    return ", ".join(f"{reason} {count}" for reason, count in new.items())


def source_port(local, remote):
    """Computed from both queue pair numbers as in Linux (rdma_calc_flow_label, _to_udp_sport)."""
    label = local * remote
    label ^= label >> 20
    label ^= label >> 40
    label &= 0xFFFFF
    return (label & 0x3FFF) ^ label >> 14 | 0xC000


def datagrams(family):
    """The datagrams that UD sends, field by field."""
    def run(rig):
        text, path = captured_pairs(rig, ["ib_send_bw -c UD -s 1001 -n 20"], family)
        ends = announced(text)
        fields = (*FIELDS, "infiniband.deth.q_key", "infiniband.deth.srcqp")
        rows = [r for r in dissect(path, *fields) if r["infiniband.bth.opcode"] == "100"]
        if len(rows) < 20:
            raise Failure(f"{len(rows)} datagrams crossed the wire")
        local, remote = ends["local"]["qpn"], ends["remote"]["qpn"]
        for row in rows:
            expect("queue pair", number(row["infiniband.bth.destqp"]), remote)
            expect("source queue pair", number(row["infiniband.deth.srcqp"]), local)
            expect("Q_Key", number(row["infiniband.deth.q_key"]), 0x11111111)
            expect("pad count", number(row["infiniband.bth.padcnt"]), 3)
            expect("source port", int(row["udp.srcport"]), source_port(local, remote))
        return f"{len(rows)} datagrams as announced"
    return run


JOINED, LEFT, ANSWER = 4, 3, 2  # CHANGE_TO_EXCLUDE_MODE, CHANGE_TO_INCLUDE_MODE, MODE_IS_EXCLUDE
GROUP = {"v4": "239.7.8.9", "v6": "ff15::708:90a"}  # MGID's


def await_octets(what, path, octets):
    """Waits for them in a capture that is being written: a start of tshark costs 0.4 s of a processor."""
    wait_until(what, 20, lambda: path.exists() and octets in path.read_bytes(), 0.05)


def record(kind, group):
    """Octets of a report in IGMPv3 and in MLDv2: the record's kind, no more data, no sources, the group."""
    family = socket.AF_INET6 if ":" in group else socket.AF_INET
    return bytes([kind, 0, 0, 0]) + socket.inet_pton(family, group)


def check_records(path, protocol, group, *kinds):
    """tshark sees these records about the group."""
    text = sh("tshark", "-r", str(path), "-Y", protocol, "-V")
    found = re.findall(r"Record Type: .*?\((\d)\).*?Multicast Address: (\S+)", text, re.S)
    if missing := {(str(kind), group) for kind in kinds} - set(found):
        raise Failure(f"tshark sees no {missing}")


def joins_by_verbs(rig, family, _reported):
    run_pair(rig, ["ib_send_bw", "-c", "UD", "-g", "-M", MGID[family], "-s", "64", "-n", "50"],
             family)


def joins_by_rdma_cm(rig, family, reported):
    words = [rig.build / "tests/end_to_end/joins", ADDRESS["a"][family == "v6"], GROUP[family]]
    member = rig.program("a", words, name="joins")
    reported(JOINED)
    member.signal(signal.SIGTERM)
    member.succeed(20)


def tells_of_groups(rig, join=joins_by_verbs):
    """A join and a leave of a side are reported to the link."""
    said = []
    for family, protocol in (("v4", "igmp"), ("v6", "icmpv6.type == 143")):
        path = rig.folder / f"groups-{family}.pcapng"
        # IGMP, or IPv6 with a hop-by-hop header
        capture = Process(rig, "dumpcap", [
            *rig.inside("b"), "dumpcap", "-q", "-i", "wire", "-B", "64", "-w", str(path), "-f",
            "igmp" if family == "v4" else "ip6[6] == 0"])
        capture.expect("File: ", 20)
        wanted = GROUP[family]

        def reported(kind):
            await_octets(f"report {kind} about {wanted}", path, record(kind, wanted))
        join(rig, family, reported)
        reported(JOINED)
        reported(LEFT)
        capture.end()
        check_records(path, protocol, wanted, JOINED, LEFT)
        said.append(wanted)
    return "joined and left " + ", ".join(said)


# A querier's question about all groups of the link, MLDv2, with a router alert. The kernel adds a link-local source
# and the checksum.
MLD_QUERY = """
import socket
asks = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
asks.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, bytes([0, 0, 5, 2, 0, 0, 1, 0]))
query = bytes([130, 0, 0, 0, 0, 100, 0, 0]) + bytes(16) + bytes(4)
asks.sendto(query, ("ff02::1", 0, 0, socket.if_nametoindex("wire")))
"""


def tells_of_solicited_nodes(rig):
    """Switches that look into MLD pass questions for our addresses to ports that reported their groups."""
    path = rig.folder / "solicited.pcapng"
    capture = Process(rig, "dumpcap", [*rig.inside("b"), "dumpcap", "-q", "-i", "wire", "-B", "64", "-w", str(path),
                                       "-f", "ip6[6] == 0"])
    capture.expect("File: ", 20)
    sh(*rig.inside("b"), "/usr/bin/python3", "-B", "-c", MLD_QUERY)
    wanted = "ff02::1:ff00:1"  # of fd07::1
    # when an engine starts, it reports its groups by itself, but as JOINED
    await_octets(f"an answer about {wanted}", path, record(ANSWER, wanted))
    capture.end()
    check_records(path, "icmpv6.type == 143", wanted, ANSWER)
    return wanted


WIRE_CASES = [
    ("headers-v4", headers("v4")),
    ("headers-v6", headers("v6")),
    ("datagrams-v4", datagrams("v4")),
    ("datagrams-v6", datagrams("v6")),
    ("icrc-v4", icrcs("v4")),
    ("icrc-v6", icrcs("v6")),
]

# Not with --quick: a capture of six programs takes 5 s. Each port and each family has one without these.
LONG = ("veth1500/icrc-v6", "veth4200/icrc-v4", "netdev1500/icrc-v4")

CASES = {
    "veth1500": [*WIRE_CASES, ("ping", answers_ping), ("groups", tells_of_groups),
                 ("solicited-nodes", tells_of_solicited_nodes),
                 ("groups-rdma_cm", lambda rig: tells_of_groups(rig, joins_by_rdma_cm)),
                 ("malformed", malformed)],
    "veth4200": WIRE_CASES,
    "netdev1500": [*WIRE_CASES, ("groups", tells_of_groups),
                   ("groups-rdma_cm", lambda rig: tells_of_groups(rig, joins_by_rdma_cm))],
    "netdev4200": [("icrc-v4", icrcs("v4"))],
}
