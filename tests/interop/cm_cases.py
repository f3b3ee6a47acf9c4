# SPDX-License-Identifier: BSD-3-Clause
"""
Programs that connect through rdma_cm: one on rxe, one on uroce. A client is started when the list
at the server's end (`rdma resource`, `uroce stat --cm`) shows that the server listens.

Not here: XRC (rxe of Linux 6.1 does not support it: rdma_create_ep and rdma_get_request fail),
perftest -R over IPv6 (perftest 4.5 asks only for IPv4 addresses), rdma_xserver over IPv6 (it
listens only on 0.0.0.0), mckey with an IPv6 group (rdma_join_multicast of Linux 6.1 fails with
ENOTSUPP for RoCEv2).
"""

import dataclasses
import re
import time

from ends import Ours, Theirs, await_listener, ends
from impaired import Capture, lossy
from rig import Failure, wait_until

FORMAT = {"v4": "ip", "v6": "ipv6"}
ANY = {"v4": "0.0.0.0", "v6": "::"}
UD_SEND_ONLY_WITH_IMM = 0x65
UDADDY_PORT = 7174  # it cannot be changed
REFUSED = re.compile(r"REJECTED|refused|UNREACHABLE|unexpected CM event", re.I)


def wrong(what, status, output):
    return Failure(f"{what} ended with {status}: {output.strip()[-200:]}")


@dataclasses.dataclass
class CmCase:
    """{server} and other names in braces are filled in when the case runs."""
    name: str  # with the address family first
    server: str
    client: str
    quick: bool = False
    limit: int = 60
    roles: tuple = ("client", "server")
    stays: bool = False  # the server runs until it is killed
    clients: int = 1  # one after the other
    says: str = ""  # a pattern that the client must print

    def family(self):
        return self.name.split("/")[0]

    def values(self, wire, address):
        family = self.family()
        return {"port": wire.rig.port(), "any": ANY[family], "format": FORMAT[family],
                "server": address[family == "v6"], "build": wire.rig.build}

    def run(self, wire, role):
        server_end, client_end = ends(wire, role)
        values = self.values(wire, server_end.addresses)
        server, client = (line.format(**values).split() for line in (self.server, self.client))
        port = UDADDY_PORT if server[0] == "udaddy" else values["port"]
        end = time.monotonic() + self.limit
        while True:
            running = server_end.start(server)
            await_listener(server_end, running, port)
            try:
                return self.meet(server_end, running, client_end, client)
            except Again:
                if time.monotonic() > end:
                    raise

    def meet(self, server_end, running, client_end, client):
        met = False
        try:
            for _ in range(self.clients):
                output = self.one_client(client_end, client)
            met = True
        finally:
            if self.stays or not met:
                server_end.stop(running)
        if not self.stays:
            status, said = server_end.finish(running, self.limit)
            if status != 0:
                raise wrong(f"the server, {server_end.name},", status, said)
        return self.remark(output)

    def one_client(self, client_end, client):
        status, output = client_end.finish(client_end.start(client), self.limit)
        if status == 0 and re.search(self.says, output):
            return output
        # perftest's servers listen twice, and nothing shows the second time
        if status != 0 and client[0].startswith("ib_") and REFUSED.search(output):
            raise Again(str(wrong(f"the client, {client_end.name},", status, output)))
        raise wrong(f"the client, {client_end.name},", status, output)

    def remark(self, output):
        took = re.search(r"^connect\s+:.*\s([\d.]+)$", output, re.MULTILINE)
        return f"{took[1]} us a connect" if took else None


@dataclasses.dataclass
class LinkLocalCase(CmCase):
    """The server's address is link-local; the client's interface is its scope."""

    def values(self, wire, address):
        show = ["-6", "-o", "address", "show", "scope", "link", "dev"]
        there = address is wire.theirs
        text = (wire.guest.run(["ip", *show, "eth0"]) if there else
                wire.rig.ip("a", *show, "tap0"))
        found = re.search(r"fe80::[0-9a-f:]+", text)
        return {"port": wire.rig.port(), "server": f"{found[0]}%{'tap0' if there else 'eth0'}"}


class Again(Failure):
    """The client was started too early."""


@dataclasses.dataclass
class NobodyCase:
    """A client without a server: the peer answers with a REJ with reason 8 (protocol-map 193)."""
    name: str
    quick: bool = False
    roles: tuple = ("client", "server")

    def run(self, wire, role):
        server_end, client_end = ends(wire, role)
        address = server_end.addresses[self.name.startswith("v6")]
        words = ["rping", "-c", "-a", address, "-p", str(wire.rig.port()), "-C", "1"]
        status, output = client_end.finish(client_end.start(words), 30)
        if status == 0 or not re.search(r"REJECTED, error 8\b", output):
            raise wrong("a client without a server", status, output)


@dataclasses.dataclass
class MulticastCase:
    """mckey: one end joins a group and receives what the other one sends to it. The sender asks for
    no completion and destroys its address handle at once. rxe looks the handle up when it sends, so
    datagrams may be lost before they leave the guest. On a busy machine they may be lost on their way
    to rxe, too. So they are sent again. A failure says how many uroce sent, and how many reached the
    guest, each time."""
    name: str
    options: str = ""
    quick: bool = False
    roles: tuple = ("client", "server")
    group = "239.7.8.9"
    datagrams = 10  # per queue pair
    attempts = 3

    def run(self, wire, role):
        hearer_end, sender_end = ends(wire, role)
        words = ["stdbuf", "-oL", "mckey", "-m", self.group, "-C", str(self.datagrams),
                 *self.options.split()]
        hearer = hearer_end.start([*words, "-b", hearer_end.addresses[0]])
        send = [*words, "-s", "-b", sender_end.addresses[0]]
        heard, said = False, []
        try:
            wait_until(f"mckey's group, {hearer_end.name}", 20,
                       lambda: "joined dgid" in hearer_end.output(hearer)[1], 0.05)
            for _ in range(self.attempts):
                if isinstance(sender_end, Ours):
                    said.append(self.send_and_count(wire, sender_end, send))
                else:
                    self.send(sender_end, send)
                if self.ended(hearer_end, hearer):
                    break
            status, output = hearer_end.finish(hearer, 30)
            if status != 0:
                raise wrong(f"({'; '.join(said)}) the receiver, {hearer_end.name},", status, output)
            heard = True
        finally:
            if not heard:
                hearer_end.stop(hearer)
        return "; ".join(said[:-1])

    @staticmethod
    def send(end, words):
        status, output = end.finish(end.start(words), 30)
        if status != 0:
            raise wrong(f"the sender, {end.name},", status, output)

    def send_and_count(self, wire, end, words):
        before = wire.rig.statistics("a")["tx_packets"]
        with Capture(wire.guest) as capture:
            self.send(end, words)
        sent = wire.rig.statistics("a")["tx_packets"] - before
        reached = sum((packet.source, packet.opcode) == (end.addresses[0], UD_SEND_ONLY_WITH_IMM)
                      for packet in capture.packets)
        return f"{sent} packets were sent, {reached} datagrams reached the guest"

    @staticmethod
    def ended(end, program, limit=5):
        try:
            return wait_until("the end", limit, lambda: end.output(program)[0] is not None,
                              0.1)
        except Failure:
            return False


@dataclasses.dataclass
class LossyCase:
    """Another case while packets are lost in both directions. A CM message is repeated after some
    seconds. The case is repeated until a packet was lost."""
    of: CmCase
    percent: float
    quick: bool = False
    roles: tuple = ("client", "server")
    attempts = 5

    @property
    def name(self):
        return f"loss/{self.of.name.replace('/', '-')}-{self.percent}"

    def run(self, wire, role):
        with lossy(wire.guest, self.percent) as lost:
            for _ in range(self.attempts):
                remark = self.of.run(wire, role)
                count = lost()
                if count > 0:
                    return f"{count} packets lost{', ' if remark else ''}{remark or ''}"
        raise Failure(f"no packet was lost in {self.attempts} attempts")


@dataclasses.dataclass
class VanishCase:
    """The guest disappears while a connection is in use. The engine keeps nothing of it, and the
    next guest connects normally."""
    name: str = "vanish/rping"
    quick: bool = False
    roles: tuple = ("client", "server")

    def run(self, wire, role):
        server_end, client_end = ends(wire, role)
        before = Ours(wire).at_rest()
        port = wire.rig.port()
        server = server_end.start(["rping", "-s", "-a", "0.0.0.0", "-p", str(port), "-P"])
        await_listener(server_end, server, port)
        client = client_end.start(["rping", "-c", "-a", server_end.addresses[0], "-p", str(port)])
        packets = wire.rig.statistics("a")["rx_packets"]
        wait_until("1000 packets of the guest", 60,
                   lambda: wire.rig.statistics("a")["rx_packets"] > packets + 1000, 0.05)
        wire.guest.vanish()
        # it may wait for a message, and nothing tells it that none will come
        Ours(wire).stop(client if role == "client" else server)
        wait_until("the end of what the engine kept of it", 120,
                   lambda: Ours(wire).objects() == before, 0.2)
        wire.guest.start_machine()
        RPING["v4"].run(wire, role)


@dataclasses.dataclass
class FloodCase:
    """The guest sends requests without end, and a listening uroce program does not look at them.
    Requests up to its backlog wait, the engine does not grow, and other programs connect and
    transfer meanwhile."""
    name: str = "v4/flood"
    quick: bool = False
    roles: tuple = ("server",)
    backlog = 16
    growth_kib = 32 << 10

    def run(self, wire, role):
        ours, theirs = Ours(wire), Theirs(wire)
        port, busy_port = wire.rig.port(), wire.rig.port()
        before = ours.at_rest()
        memory = self.resident(wire)
        busy = ours.start(["rping", "-s", "-a", "0.0.0.0", "-p", str(busy_port), "-P"])
        await_listener(ours, busy, busy_port)
        long = theirs.start(["rping", "-c", "-a", wire.ours[0], "-p", str(busy_port), "-C", "3000"])
        peer = str(wire.rig.build / "tests/interop/cm_peer/cm_peer")
        deaf = ours.start([peer, "deaf", wire.ours[0], str(port)])
        await_listener(ours, deaf, port)
        flood = theirs.start([peer, "flood", wire.ours[0], str(port), "-t", "6"])
        most = 0
        while theirs.output(flood)[0] is None:
            most = max(most, ours.objects()["connections"])
            RPING["v4"].one_client(theirs, ["rping", "-c", "-a", wire.ours[0], "-p",
                                            str(busy_port), "-C", "5", "-V"])
        grown = self.resident(wire) - memory
        status, said = theirs.finish(flood, 10)
        if status != 0:
            raise wrong("the flood", status, said)
        status, output = theirs.finish(long, 60)
        if status != 0:
            raise wrong("the earlier connection", status, output)
        ours.stop(deaf)
        ours.stop(busy)
        wait_until("the end of what the engine kept of it", 120, lambda: ours.objects() == before,
                   0.2)
        self.judge(said, most, grown)
        return f"{said.strip()}; at most {most} connections, {grown} KiB more"

    def judge(self, said, most, grown):
        asked, refused = map(int, re.search(r"asked (\d+) times, refused (\d+)", said).groups())
        # As with Linux a request that finds the backlog full gets no answer, so a refusal would
        # take long.
        if asked - refused < 500 or most < self.backlog:
            raise Failure(f"the flood was too small: {said.strip()}; at most {most} connections")
        # connections of the clients that came meanwhile are in TIMEWAIT
        if most > self.backlog + 200 or grown > self.growth_kib:
            raise Failure(f"{most} connections were kept, {grown} KiB")

    def resident(self, wire):
        with open(f"/proc/{wire.rig.engines['a'].pid}/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@dataclasses.dataclass
class ThousandCase:
    """Sets up and closes connections, which must leave nothing at either end."""
    name: str
    count: int = 1000
    quick: bool = False
    roles: tuple = ("client", "server")

    def run(self, wire, role):
        ours, theirs = Ours(wire), Theirs(wire)
        before = ours.at_rest(), theirs.objects()
        once = CmCase(self.name, "cmtime -b {server} -p {port} -c %d" % self.count,
                      "cmtime -s {server} -p {port} -c %d" % self.count, stays=True, limit=120)
        began = time.monotonic()
        remark = once.run(wire, role)
        took = time.monotonic() - began
        wait_until(f"the end of all that {self.count} connections made (before: {before})", 180,
                   lambda: (ours.objects(), theirs.objects()) == before, 0.5)
        return f"{self.count} connections in {took:.1f} s, {remark}; nothing left on either side"


def connections(family):
    peer = "{build}/tests/interop/cm_peer/cm_peer"
    both = " {server} {port}"
    ucmatose = ("ucmatose -b {any} -f {format} -p {port} ",
                "ucmatose -s {server} -f {format} -p {port} ")
    rows = [
        ("ucmatose", *(words + "-c 5 -C 10 -S 1000" for words in ucmatose), {"quick": True}),
        ("ucmatose-20", *(words + "-c 20 -C 3 -S 64" for words in ucmatose)),
        ("ucmatose-1", *(words + "-C 1 -S 1" for words in ucmatose)),
        ("ucmatose-64K", *(words + "-C 5 -S 65536" for words in ucmatose)),
        ("ucmatose-migrate", *(words + "-c 5 -C 5 -m" for words in ucmatose)),
        ("ucmatose-tos", *(words + "-C 5 -t 32 -a 16" for words in ucmatose)),
        ("udaddy", "udaddy -b {any} -f {format} -c 3 -C 5 -S 512",
         "udaddy -s {server} -f {format} -c 3 -C 5 -S 512", {"quick": True}),
        ("udaddy-2K", "udaddy -b {any} -f {format} -C 5 -S 2000",
         "udaddy -s {server} -f {format} -C 5 -S 2000"),
        ("rping-own-qp", "rping -s -q -a {any} -p {port} -C 20 -V",
         "rping -c -q -a {server} -p {port} -C 20 -V"),
        ("rping-verbose", "rping -s -a {any} -p {port} -C 10 -v -V -S 60000",
         "rping -c -a {server} -p {port} -C 10 -v -V -S 60000", {"says": "rdma-ping-9"}),
        ("rping-persistent", "rping -s -P -a {any} -p {port}",
         "rping -c -a {server} -p {port} -C 5 -V", {"stays": True, "clients": 4}),
        ("rdma_server", "rdma_server -s {server} -p {port}", "rdma_client -s {server} -p {port}",
         {"quick": True}),
        ("cmtime", "cmtime -b {server} -p {port} -c 50", "cmtime -s {server} -p {port} -c 50",
         {"stays": True, "quick": True}),
        ("private", f"{peer} serve -s 196 -r 56{both}", f"{peer} connect -s 56 -r 196{both}",
         {"quick": True}),
        ("ece", f"{peer} serve -e{both}", f"{peer} connect -e{both}"),
        ("private-none", f"{peer} serve{both}", f"{peer} connect{both}"),
        ("rejected", f"{peer} serve -j -s 148 -r 56{both}", f"{peer} connect -j -s 56 -r 148{both}",
         {"quick": True}),
        ("private-ud", f"{peer} serve -u -s 136 -r 180{both}",
         f"{peer} connect -u -s 180 -r 136{both}"),
        ("rejected-ud", f"{peer} serve -u -j -s 136 -r 180{both}",
         f"{peer} connect -u -j -s 180 -r 136{both}"),
    ]
    for name, server, client, *options in rows:
        yield CmCase(f"{family}/{name}", server, client, **(options[0] if options else {}))


def perftests():
    rows = [("write_bw", "-s 65536 -n 100"), ("write_lat", "-n 200"), ("read_bw", "-n 50"),
            ("read_lat", "-n 200"), ("send_bw", "-n 50"), ("send_lat", "-n 200"),
            ("atomic_bw", "-n 200 -A FETCH_AND_ADD"), ("atomic_lat", "-n 200"),
            ("send_bw", "-c UD -s 2048 -n 100 -t 4"), ("send_lat", "-c UD -s 64 -n 200"),
            ("write_bw", "-q 4 -s 4096 -n 100"), ("write_bw", "-b -s 4096 -n 200"),
            ("send_bw", "-e -s 4096 -n 100")]
    for what, options in rows:
        words = f"ib_{what} -R -F -p {{port}} {options}"
        suffix = "".join(f"-{word}" for word in re.findall(r"-([cqbe])\b", options))
        yield CmCase(f"v4/{what}{suffix}-R", words, words + " {server}",
                     quick=what == "write_bw" and not suffix)
    words = "ib_write_bw -z -F -p {port} -s 4096 -n 100"
    yield CmCase("v4/write_bw-z", words, words + " {server}")


RPING = {family: CmCase(f"{family}/rping", "rping -s -a {any} -p {port} -C 20 -V",
                        "rping -c -a {server} -p {port} -C 20 -V", quick=True)
         for family in FORMAT}


def cases():
    for family in FORMAT:
        yield RPING[family]
        for case in connections(family):
            # --quick: what IPv6 changes is the same for all of them
            yield dataclasses.replace(case, quick=case.quick and (family == "v4" or "udaddy" in case.name))
        yield NobodyCase(f"{family}/nobody", quick=True)
        yield ThousandCase(f"{family}/thousand")
    yield LinkLocalCase("link-local/rping", "rping -s -a :: -p {port} -C 20 -V",
                        "rping -c -a {server} -p {port} -C 20 -V")
    yield LinkLocalCase("link-local/udaddy", "udaddy -b :: -f ipv6 -C 5 -S 512",
                        "udaddy -s {server} -f ipv6 -C 5 -S 512")
    yield CmCase("v4/rdma_xserver", "rdma_xserver -p {port}", "rdma_xclient -s {server} -p {port}")
    yield MulticastCase("v4/mckey", quick=True)
    yield MulticastCase("v4/mckey-several", "-c 3 -S 2000")
    yield from perftests()
    ucmatose = next(case for case in connections("v4") if case.name == "v4/ucmatose-20")
    for percent in (1, 3, 5):
        yield LossyCase(dataclasses.replace(ucmatose, limit=180), percent)
    yield LossyCase(dataclasses.replace(RPING["v6"], limit=120), 5)
    yield FloodCase()
    yield VanishCase()
