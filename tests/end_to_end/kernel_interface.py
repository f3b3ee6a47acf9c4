# SPDX-License-Identifier: BSD-3-Clause
"""A port that the kernel uses, too (--kernel-interface): RoCE for the engine, everything else for
the kernel, on one cable.

The ports are net_af_packet on veth, where the kernel must not answer on the interface below, and
memif, which has no kernel below.
"""

import os
import re
import subprocess
import sys
import time

import connections
import programs
from rig import ADDRESS, CONTROL, Failure, Process, af_packet, sh, two_namespaces, wait_until, wakes

NAME = "kernel0"
MUTE = ("net.ipv6.conf.wire.disable_ipv6=1", "net.ipv4.conf.wire.rp_filter=1",
        "net.ipv4.conf.all.rp_filter=0")
AT_ONCE = ("net.ipv6.conf.default.accept_dad=0", "net.ipv4.conf.default.arp_notify=1")


# -- the rigs --------------------------------------------------------------------------------

def sysctl(rig, side, *settings):
    sh(*rig.inside(side), "sysctl", "-qw", *settings)


def mute(rig, side):
    """Keeps the kernel from answering on the interface below the port."""
    sysctl(rig, side, *MUTE)
    rig.ip(side, "link", "set", "wire", "arp", "off")


def addresses(side):
    return f"{ADDRESS[side][0]}/24,{ADDRESS[side][1]}/64"


def start(rig, side, mtu, options=(), queues=1):
    eal = ["-l", f"0-{queues - 1}"] if queues > 1 else []
    # a ring large enough for a flood while the lcore does not run
    port = af_packet("wire", mtu).replace("framecnt=1024", "framecnt=8192")
    rig.begin_engine(side, [*eal, f"{port},qpairs={queues}"],
                     ["--port", "net_af_packet0", "--mtu", str(mtu), "--kernel-interface", NAME,
                      "--ip", addresses(side), *options])


def on_veth(build, mtu, options=(), queues=1):
    rig = two_namespaces(build, control=False)
    rig.veth("wire", mtu)
    for side in "ab":
        sysctl(rig, side, *AT_ONCE)
        mute(rig, side)
        start(rig, side, mtu, options, queues)
    rig.await_engines()
    return finish(rig, mtu)


def finish(rig, mtu, fragments=None):
    # net_af_packet reassembles IPv4 fragments, and truncates packets that are larger than its frames
    rig.fragments = fragments or mtu + 20
    rig.control = ADDRESS["a"][0]
    rig.mtu = 1024 if mtu <= 1500 else 4096
    return rig


def on_memif(build):
    rig = two_namespaces(build, control=False)
    path = rig.folder / "memif.sock"
    for side, role in (("a", "server"), ("b", "client")):
        sysctl(rig, side, *AT_ONCE)
        rig.engine(side, [f"--vdev=net_memif0,role={role},socket={path},socket-abstract=no,"
                          f"bsize=8192,rsize=11"],
                   ["--port", "net_memif0", "--mtu", "4200", "--kernel-interface", NAME,
                    "--ip", addresses(side)])
    for side in "ab":
        wait_until(f"the link of memif side {side}", 20,
                   lambda: rig.statistics(side)["active"], 0.05)
    return finish(rig, 4200, 12000)


def with_linux(build):
    """The peer is an ordinary kernel that shares its interface with an engine (--netdev). It leaves
    checksums to hardware, which a veth does not have; its segments must fit into frames."""
    rig = two_namespaces(build, control=False)
    rig.veth("wire", 1500)
    for side in "ab":
        sysctl(rig, side, *AT_ONCE)
    for address, length in zip(ADDRESS["b"], (24, 64)):
        rig.ip("b", "address", "add", f"{address}/{length}", "dev", "wire")
    rig.ip("b", "link", "set", "wire", "gso_max_segs", "1")
    mute(rig, "a")
    start(rig, "a", 1500)
    rig.begin_engine("b", options=["--netdev", "wire"])
    rig.await_engines()
    return finish(rig, 1500)


RIGS = {
    "kernel1500": lambda build: on_veth(build, 1500),
    "kernel4200": lambda build: on_veth(build, 4200),
    "kernel-vlan": lambda build: on_veth(build, 1500, ["--vlan", "7"]),
    "kernel-lcores": lambda build: on_veth(build, 4200, queues=2),
    "kernel-memif": on_memif,
    "kernel-linux": with_linux,
}


# -- helpers ---------------------------------------------------------------------------------

class Watcher:
    """An unmodified program that waits for asynchronous events."""

    def __init__(self, rig, side):
        self.process = rig.program(side, ["stdbuf", "-oL", "ibv_asyncwatch"])
        self.process.expect("async event FD", 15)
        self.seen = 0

    def events(self):
        return re.findall(r"event_type (IBV_EVENT_\w+)", self.process.output())

    def expect(self, event, limit=20):
        """Waits for this event, whatever events come before it."""
        def came():
            new = self.events()[self.seen:]
            if event not in new:
                return False
            self.seen += new.index(event) + 1
            return True
        wait_until(f"{event} (there were {self.events()[self.seen:]})", limit, came)

    def end(self):
        self.process.end()


def echoes(rig, side):
    """How many questions and answers of ping the kernel has received, of both families."""
    first, *numbers = re.findall(r"^Icmp: (.*)", sh(*rig.inside(side), "cat", "/proc/net/snmp"), re.M)
    v4 = dict(zip(first.split(), map(int, numbers[0].split())))
    v6 = dict(line.split() for line in sh(*rig.inside(side), "cat", "/proc/net/snmp6").splitlines())
    return (v4["InEchos"] + int(v6["Icmp6InEchos"]), v4["InEchoReps"] + int(v6["Icmp6InEchoReplies"]))


def ping(rig, side, address, *options):
    """Each answer comes, and ping's mean time is returned. It waits for the last one only for as long as between two,
    so that a busy machine can be too slow for it."""
    other = "b" if side == "a" else "a"
    asked, came = echoes(rig, other)[0], echoes(rig, side)[1]
    words = [*rig.inside(side), "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", *options, address]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    if " 0% packet loss" not in done.stdout:
        try:
            wait_until("the answers", 10, lambda: echoes(rig, side)[1] - came >= 3)
        except Failure:
            raise Failure(f"ping {address} {options}: {(done.stdout + done.stderr).strip().splitlines()[-2:]}; "
                          f"{echoes(rig, other)[0] - asked} questions and {echoes(rig, side)[1] - came} answers "
                          "came within 10 s") from None
        return "late"
    return re.search(r"= [\d.]+/([\d.]+)/", done.stdout)[1]


def answers(rig, side, address):
    """Packets may be lost while a link comes up."""
    words = [*rig.inside(side), "ping", "-n", "-c", "1", "-W", "2", address]
    return subprocess.run(words, capture_output=True, timeout=30).returncode == 0


SERVER = """
import socket, sys, zlib
family, address, port = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, *sys.argv[1:3]
s = socket.create_server((address, int(port)), family=family)
c = s.accept()[0]
crc = octets = 0
while True:
    some = c.recv(1 << 20)
    if not some:
        break
    crc = zlib.crc32(some, crc)
    octets += len(some)
c.sendall(f"{octets} {crc}".encode())
"""
CLIENT = """
import os, socket, sys, time, zlib
block, crc, octets = os.urandom(1 << 16), 0, 0
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
begin = time.monotonic()
while time.monotonic() - begin < float(sys.argv[3]):
    s.sendall(block)
    crc = zlib.crc32(block, crc)
    octets += len(block)
s.shutdown(socket.SHUT_WR)
said = s.recv(100).decode()
assert said == f"{octets} {crc}", f"sent {octets} {crc}, arrived {said}"
print(int(octets * 8 / (time.monotonic() - begin) / 1e6), "Mbit/s")
"""


class Stream:
    """TCP between the kernels for some seconds; compares what arrives with what was sent."""

    def __init__(self, rig, sender, receiver, family, seconds):
        port = rig.port()
        address = ADDRESS[receiver][family == "v6"]
        self.server = Process(rig, "tcp-server", [*rig.inside(receiver), sys.executable, "-c",
                                                  SERVER, address, str(port)])
        self.server.await_listening(port)
        self.client = Process(rig, "tcp-client", [*rig.inside(sender), sys.executable, "-c", CLIENT,
                                                  address, str(port), str(seconds)])

    def finish(self, limit=40):
        said = self.client.succeed(limit).strip()
        self.server.succeed(10)
        return said


def kernel_counters(rig, side):
    numbers = rig.statistics(side)
    return numbers["kernel_given"], numbers["kernel_taken"]


# -- the cases -------------------------------------------------------------------------------

def pings(rig):
    """Single packets and fragments, both families, both directions."""
    said = []
    for side, other in (("a", "b"), ("b", "a")):
        for address in ADDRESS[other]:
            wait_until(f"an answer of {address}", 20, lambda: answers(rig, side, address))
            said.append(ping(rig, side, address))
            ping(rig, side, address, "-s", str(rig.fragments if "." in address else 12000))
    return f"{said[0]} ms, fragments too"


def stream(sender, receiver, family):
    def run(rig):
        before = [kernel_counters(rig, side) for side in rig.engines]
        said = Stream(rig, sender, receiver, family, 1).finish()
        if kernel_counters(rig, "a")[0] == before[0][0]:
            raise Failure("no ping went through the engine")
        return said
    return run


def both(rig):
    """TCP and RoCE at once, both intact; and RoCE whose data a program checks."""
    tcp = Stream(rig, "b", "a", "v4", 2.5)
    words = "ib_write_bw -s 65536 -D 2".split()
    said = programs.run_pair(rig, words)
    checked = programs.run_pair(rig, "ibv_rc_pingpong -n 300 -c".split(), "v6")
    return f"RoCE {said}, {checked}; TCP {tcp.finish()}"


def addresses_follow(rig):
    def has(address):
        return address in rig.statistics("a")["addresses"]

    watcher = Watcher(rig, "a")
    for address, length in (("10.7.0.77", 24), ("fd07::77", 64)):
        for verb, there in (("add", True), ("del", False)):
            rig.ip("a", "address", verb, f"{address}/{length}", "dev", NAME)
            wait_until(f"{address} in the GID table: {there}", 15, lambda: has(address) == there)
            watcher.expect("IBV_EVENT_GID_CHANGE")
    watcher.end()
    text = rig.program("a", ["ibv_devinfo", "-v", "-d", "uroce0"]).succeed(15)
    if not re.search(rf"GID\[\s*1\]:\s+::ffff:{re.escape(ADDRESS['a'][0])}", text):
        raise Failure("the first address has lost its place")
    return "in the GID table and out of it, with events"


def state(rig):
    text = rig.program("a", ["ibv_devinfo", "-d", "uroce0"]).succeed(15)
    return (re.search(r"state:\s+PORT_(\w+)", text)[1], int(re.search(r"active_mtu:\s+(\d+)", text)[1]))


def link_follows(rig):
    watcher = Watcher(rig, "a")
    for what, words in (("the cable", ("b", "link", "set", "wire")),
                        ("the interface", ("a", "link", "set", NAME))):
        rig.ip(*words, "down")
        watcher.expect("IBV_EVENT_PORT_ERR")
        if state(rig)[0] != "DOWN":
            raise Failure(f"{what} is down, and the port is {state(rig)[0]}")
        if what == "the cable" and "NO-CARRIER" not in rig.ip("a", "link", "show", NAME):
            raise Failure("the interface has a carrier, and the cable is down")
        rig.ip(*words, "up")
        watcher.expect("IBV_EVENT_PORT_ACTIVE")
        if state(rig)[0] != "ACTIVE":
            raise Failure(f"{what} is up, and the port is {state(rig)[0]}")
    watcher.end()
    restore_ipv6(rig)
    wait_until("an answer over the link that is back", 20, lambda: answers(rig, "a", ADDRESS["b"][0]))
    return "cable and interface; " + programs.run_pair(rig, "ibv_rc_pingpong -n 100 -c".split())


def restore_ipv6(rig):
    """The kernel drops the IPv6 addresses of an interface that goes down or below an MTU of 1280.
    """
    rig.ip("a", "address", "replace", f"{ADDRESS['a'][1]}/64", "dev", NAME)
    wait_until("the IPv6 address", 15, lambda: ADDRESS["a"][1] in rig.statistics("a")["addresses"])


def mtu_follows(rig):
    def set_mtu(side, name, mtu):
        rig.ip(side, "link", "set", name, "mtu", str(mtu))

    def mtu_of():
        return int(re.search(r" mtu (\d+)", rig.ip("a", "link", "show", NAME))[1])

    watcher = Watcher(rig, "a")
    for mtu, shown in ((1500, 1024), (4200, 4096), (600, 512), (9000, 4096)):
        set_mtu("a", NAME, mtu)
        watcher.expect("IBV_EVENT_PORT_ACTIVE")
        wait_until(f"an active MTU of {shown}", 15, lambda: state(rig)[1] == shown)
    wait_until("an MTU that the port carries instead of 9000", 15, lambda: mtu_of() == 4200)
    set_mtu("a", "wire", 1500)
    wait_until("the MTU of the interface below", 15, lambda: mtu_of() == 1500)
    wait_until("an active MTU of 1024", 15, lambda: state(rig)[1] == 1024)
    set_mtu("a", "wire", 4200)
    set_mtu("a", NAME, 4200)
    wait_until("an active MTU of 4096", 15, lambda: state(rig)[1] == 4096)
    watcher.end()
    restore_ipv6(rig)
    return "lowered and raised, never above the port's"


ROCE_TO = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 0))
s.settimeout(30)
to = bytes.fromhex(sys.argv[2])
print("listening", flush=True)
while True:
    frame = s.recv(100)
    if frame[:6] == to and frame[12:14] == bytes([8, 0]) and frame[36:38] == bytes([0x12, 0xb7]):
        break
"""


def mac_follows(rig):
    """The peer's MAC address changes during a transfer: the writer learns it from the kernel and
    goes on with the new one."""
    hearer = Process(rig, "hearer", [*rig.inside("a"), sys.executable, "-c", ROCE_TO, "wire",
                                     "020000000055"])
    hearer.expect("listening", 10)
    before = rig.statistics("a")["rx_packets"]
    server, client = programs.start_pair(rig, "ib_write_bw -s 4096 -D 5".split())
    wait_until("traffic", 60, lambda: rig.statistics("a")["rx_packets"] > before + 1000)
    rig.ip(rig.sides[0], "link", "set", NAME, "address", "02:00:00:00:00:55")
    text = client.succeed(40)
    if hearer.wait(40) != 0:
        raise Failure("no RoCE came for the new MAC address")
    server.succeed(15)
    if "02:00:00:00:00:55" not in rig.ip(rig.sides[0], "link", "show", "wire"):
        raise Failure("the port kept its old MAC address")
    return programs.figures("ib_write_bw", text)


TAGGED = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 0))
s.setsockopt(263, 8, 1)  # PACKET_AUXDATA: the kernel takes the tag out of the frame
if len(sys.argv) > 2:
    frame = bytes.fromhex(sys.argv[2]) + bytes(6) + bytes.fromhex("8100a00588b5") + b"tagged" * 10
    s.send(frame)
    sys.exit(0)
print("listening", flush=True)
s.settimeout(15)
while True:
    frame, extra, _, _ = s.recvmsg(2000, 200)
    if b"tagged" in frame:
        break
status, _, _, _, _, tci, tpid = __import__("struct").unpack("IIIHHHH", extra[0][2][:20])
print(f"tag {tci:04x} {tpid:04x}" if status & 16 else frame[12:18].hex())
"""


def tags(rig):
    """A tagged frame leaves with the same tag, for VLANs of the kernel."""
    hearer = Process(rig, "hearer", [*rig.inside("a"), sys.executable, "-c", TAGGED, NAME])
    hearer.expect("listening", 10)
    sh(*rig.inside("b"), sys.executable, "-c", TAGGED, NAME, "ff" * 6)
    said = hearer.succeed(20).split("\n")[1]
    if said not in ("tag a005 8100", "8100a00588b5"):
        raise Failure(f"it came with {said!r}")
    return said


def promiscuous(rig):
    """A macvlan has its own MAC address, and frames for it are received."""
    rig.ip("a", "link", "add", "link", NAME, "name", "macvlan0", "type", "macvlan", "mode", "bridge")
    rig.ip("a", "address", "add", "10.7.0.66/24", "dev", "macvlan0")
    rig.ip("a", "link", "set", "macvlan0", "up")
    try:
        rig.ip("b", "neighbour", "replace", "10.7.0.66", "dev", NAME, "lladdr",
               re.search(r"link/ether (\S+)", rig.ip("a", "link", "show", "macvlan0"))[1])
        return f"{ping(rig, 'b', '10.7.0.66')} ms"
    finally:
        rig.ip("a", "link", "del", "macvlan0")
        rig.ip("b", "neighbour", "del", "10.7.0.66", "dev", NAME)


def groups(rig):
    """The kernel joins the multicast groups of RoCE programs and reports them to the link."""
    words = f"ib_send_bw -c UD -g -M {programs.MGID['v4']} -s 1024 -n 200".split()
    return programs.run_pair(rig, words)


def flood(rig):
    """Small UDP packets for the kernel, as fast as one core sends them: RoCE still works.

    The programs find each other beside the flood: TCP would wait longer after each lost packet."""
    rig.veth("ctl", 1500)
    for side in "ab":
        rig.ip(side, "address", "add", f"{CONTROL[side]}/24", "dev", "ctl")
    rig.control = CONTROL["a"]
    mac = re.search(r"link/ether (\S+)", rig.ip("a", "link", "show", NAME))[1]
    flooder = Process(rig, "flood", [*rig.inside("b"), str(rig.build / "tests/end_to_end/flood"),
                                     "wire", mac, *ADDRESS["b"][:1], *ADDRESS["a"][:1]])
    flooder.expect("flooding", 10)
    before = rig.statistics("a")
    said = programs.run_pair(rig, "ib_write_bw -s 65536 -n 300 -u 16".split())
    checked = programs.run_pair(rig, "ibv_rc_pingpong -n 100 -c".split())

    def came():
        now = rig.statistics("a")
        given = now["kernel_given"] - before["kernel_given"]
        dropped = now["by_reason"]["kernel_full"] - before["by_reason"]["kernel_full"]
        return given + dropped >= 20000 and (given, dropped)
    given, dropped = wait_until("20000 frames of the flood", 30, came, 0.1)
    if not flooder.alive():
        raise Failure(f"the flood ended: {flooder.tail()}")
    flooder.end()
    # the first answer comes after what the flood left in the port's ring; until then a full queue drops pings, too
    wait_until("an answer after the flood", 20, lambda: answers(rig, "b", ADDRESS["a"][0]))
    ping(rig, "b", ADDRESS["a"][0])
    return f"{said}, {checked}; {given} frames to the kernel, {dropped} dropped"


def idle(rig):
    """The thread of an idle exception path sleeps."""
    pid = uroced_pid(rig, "a")
    begin, since = wakes(pid, "uroce-kernel"), time.monotonic()

    def quiet():
        nonlocal begin, since
        now = wakes(pid, "uroce-kernel")
        if now - begin > 2:
            begin, since = now, time.monotonic()
        return time.monotonic() - since >= 0.5
    # the kernels stop announcing their new addresses at some time
    wait_until("half a second without a wake-up", 20, quiet)
    return "no wake-ups"


def uroced_pid(rig, side):
    """The engine that nsenter executed."""
    return rig.engines[side].pid


def refusals(build):
    """Invalid names and missing rights: one line that names the option, and nothing is left behind.
    """
    rig = two_namespaces(build, control=False)
    try:
        rig.veth("wire", 1500)
        no_tun = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh"]
        no_right = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"]
        for wrapper, name, wanted in (
                ((), "wire", r"--kernel-interface wire: the name is taken"),
                ((), "lo", r"--kernel-interface lo: the name is taken"),
                ((), "sixteen-letters-", r"--kernel-interface sixteen-letters-: must be a name of 1 to 15"),
                ((), "a/b", r"--kernel-interface a/b: must be a name"),
                ((), "tap%d", r"--kernel-interface tap%d: must be a name"),
                (no_right, "k0", r"--kernel-interface k0: .*CAP_NET_ADMIN"),
                (no_tun, "k0", r"--kernel-interface k0: .*/dev/net/tun")):
            words = [*rig.inside("a"), *wrapper, str(build / "apps/uroced"), "--no-huge",
                     "--vdev=net_null0", "--", "--socket", rig.socket("a"), "--port",
                     "net_null0", "--ip", "10.7.0.1/24", "--kernel-interface", name]
            process = Process(rig, "refused", words)
            status = process.wait(20)
            text = process.output()
            if status not in (1, 2) or not re.search(wanted, text):
                raise Failure(f"{name}: status {status}, it printed {text.strip()[-200:]!r}")
            if os.path.exists(rig.socket("a")):
                raise Failure(f"{name}: a socket is left")
        return "7 of them"
    finally:
        rig.close()


def deleted(build):
    """The interface is deleted: the port goes down, and the engine lives and ends normally."""
    rig = on_veth(build, 1500)
    try:
        watcher = Watcher(rig, "a")
        rig.ip("a", "link", "del", NAME)
        watcher.expect("IBV_EVENT_PORT_ERR")
        idle(rig)
        rig.check_healthy()
        watcher.end()
        rig.engines["a"].signal(15)
        if rig.engines["a"].wait(10) != 0:
            raise Failure(f"the engine ended with {rig.engines['a'].popen.returncode}")
        return "only PORT_ERR"
    finally:
        rig.close()


def host_addresses(build):
    """An engine without a port follows the addresses of its host."""
    rig = two_namespaces(build, control=False)
    try:
        rig.veth("wire", 1500)
        rig.ip("a", "address", "add", "10.7.0.1/24", "dev", "wire")
        rig.engine("a")
        watcher = Watcher(rig, "a")
        for verb, there in (("add", True), ("del", False)):
            rig.ip("a", "address", verb, "10.7.0.78/24", "dev", "wire")
            watcher.expect("IBV_EVENT_GID_CHANGE")
            wait_until(f"10.7.0.78 in the GID table: {there}", 15, lambda: there == (
                "10.7.0.78" in rig.statistics("a")["addresses"]))
        watcher.end()
        return "in the GID table and out of it, with events"
    finally:
        rig.close()


def connected(family):
    """rdma_cm finds the addresses of the interface and connects over it."""
    row = next(row for row in connections.ROWS if row[0] == "rping")
    return lambda rig: connections.run_connected(rig, family, row)


def link_local(rig):
    """GID 0: the kernel's neighbours on the interface are found by it, too."""
    words = "ibv_rc_pingpong -n 100 -c -g 0".split()
    port = rig.port()
    server = rig.program("a", [*words, "-d", "uroce0", "-p", str(port)])
    server.await_listening(port)
    client = rig.program("b", [*words, "-d", "uroce0", "-p", str(port), rig.control])
    text = client.succeed(40)
    server.succeed(15)
    return programs.figures("ibv_rc_pingpong", text)


PAIRS = ("ibv_rc_pingpong -n 200 -c -e", "ibv_ud_pingpong -n 300 -s 1000", "ib_read_bw -s 65536 -n 200")


def pair(family, line):
    return lambda rig: programs.run_pair(rig, line.split(), family)


def pairs(place):
    for family in ("v4", "v6"):
        for line in PAIRS:
            yield place, f"{family}/{line.split()[0]}", pair(family, line), False


def cases():
    """Yields (place or None, name, function of a rig or of a build, quick)."""
    yield "kernel4200", "ping", pings, True
    yield "kernel4200", "idle", idle, True
    yield "kernel4200", "tcp-and-roce", both, True
    yield "kernel4200", "addresses", addresses_follow, True
    yield "kernel4200", "link", link_follows, True
    yield "kernel4200", "mtu", mtu_follows, True
    yield "kernel4200", "tags", tags, True
    yield "kernel4200", "macvlan", promiscuous, False
    yield "kernel4200", "link-local", link_local, True
    yield "kernel4200", "cm-v4", connected("v4"), False
    yield "kernel4200", "cm-v6", connected("v6"), False
    yield "kernel4200", "groups", groups, False
    yield "kernel4200", "mac", mac_follows, True
    yield "kernel1500", "ping", pings, False
    yield "kernel1500", "tcp-v6", stream("a", "b", "v6"), False
    yield "kernel1500", "flood", flood, True
    yield from pairs("kernel1500")
    yield "kernel-linux", "ping", pings, False
    yield "kernel-linux", "tcp-in", stream("b", "a", "v4"), True
    yield "kernel-linux", "tcp-in-v6", stream("b", "a", "v6"), False
    yield "kernel-linux", "tcp-out", stream("a", "b", "v4"), False
    yield from pairs("kernel-linux")
    yield "kernel-vlan", "ping", pings, False
    yield "kernel-vlan", "tcp-and-roce", both, False
    yield "kernel-lcores", "ping", pings, False
    yield "kernel-lcores", "tcp-and-roce", both, False
    yield "kernel-memif", "ping", pings, True
    yield "kernel-memif", "tcp-and-roce", both, False
    yield from pairs("kernel-memif")
    yield None, "refusals", refusals, True
    yield None, "deleted", deleted, False
    yield None, "host-addresses", host_addresses, True
