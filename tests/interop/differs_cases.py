# SPDX-License-Identifier: BSD-3-Clause
"""Where rxe differs from the specification or from uroce: both must keep working, and each must do
what docs/interoperability.md says, in the order of its table."""

import dataclasses
import functools
import re

from impaired import Capture
from peers import (LOCAL_WRITE, MW_BIND, REMOTE_WRITE, Pair, PeerCase, no_less_than, same,
                   until_state)
from rig import Failure, sh, wait_until

LENGTH = 4096
QKEY = 0x11111111
HERE = __file__.rpartition("/")[0]


def is_ours(peer):
    return peer.side == "ours"


def retry_count_7(pair):
    """7 means seven retries for uroce, endless ones for rxe; 6 means six for both."""
    source = pair.requester.region(LENGTH, seed=1)
    room = pair.responder.region(LENGTH, seed=2)
    for retries in (6, 7):
        qp, theirs = pair.connect(requester={"retry": retries, "timeout": 10})
        pair.responder.do("error", qp=theirs)  # from now on it drops packets
        pair.requester.do("send", qp=qp, op="write", mr=source["mr"], len=8, id=1,
                          raddr=room["addr"], rkey=room["rkey"])
        if retries == 6 or is_ours(pair.requester):
            (done,) = pair.requester.completes(qp, ["RETRY_EXC_ERR"])
            no_less_than("us until it gave up", done.us, retries * 4194)
        else:
            same("what rxe gives up", pair.requester.poll(qp, ms=1500), [])


def not_ready_for_long(pair):
    """rxe's timer runs on while the receiver is not ready, and uses up its retries."""
    source = pair.requester.region(LENGTH, seed=1)
    qp, theirs = pair.connect(requester={"rnr": 7, "retry": 6, "timeout": 14}, responder={"timer": 14})
    pair.requester.do("send", qp=qp, op="send", mr=source["mr"], len=8, id=1)
    (done,) = pair.requester.completes(qp, ["RETRY_EXC_ERR"])
    no_less_than("us until it gave up", done.us, 6 * 67109)
    same("the responder's queue pair", pair.responder.state(theirs), "RTS")


def reads_beyond_the_limit(pair):
    """More READs at once than the responder supports: rxe forgets the oldest one, uroce refuses."""
    source = pair.responder.region(LENGTH, seed=1)
    target = pair.requester.region(LENGTH)
    qp, theirs = pair.connect(requester={"rd": 16}, responder={"dest_rd": 1})
    pair.requester.do("send", qp=qp, op="read", mr=target["mr"], len=LENGTH, id=1, times=16,
                      raddr=source["addr"], rkey=source["rkey"])
    if not is_ours(pair.responder):
        pair.requester.completes(qp, ["SUCCESS"] * 16)
        return
    statuses = [c.status for c in pair.requester.poll(qp, n=16)]
    first = next((status for status in statuses if status != "SUCCESS"), None)
    same("the first that failed", first, "REM_INV_REQ_ERR")
    until_state(pair.responder, theirs, "ERR")


def no_reads_at_all(pair):
    source = pair.responder.region(LENGTH, seed=1)
    target = pair.requester.region(LENGTH)
    qp, theirs = pair.connect(responder={"dest_rd": 0})
    pair.requester.do("send", qp=qp, op="read", mr=target["mr"], len=64, id=1,
                      raddr=source["addr"], rkey=source["rkey"])
    pair.requester.completes(qp, ["REM_INV_REQ_ERR"])
    until_state(pair.responder, theirs, "ERR")


def window(type, pair):
    """Access through a memory window: inside, then outside of the window but inside of the region.
    """
    mr = pair.responder.region(LENGTH, LOCAL_WRITE | MW_BIND, seed=1)
    source = pair.requester.region(LENGTH, seed=9)
    qp, theirs = pair.connect()
    mw = pair.responder.do("mw", type=type)["mw"]
    rkey = pair.responder.do("bind", qp=theirs, mw=mw, mr=mr["mr"], off=1024, len=1024,
                             access=REMOTE_WRITE, id=3)["rkey"]
    pair.responder.completes(theirs, ["SUCCESS"])
    pair.requester.do("send", qp=qp, op="write", mr=source["mr"], len=1024, id=1,
                      raddr=mr["addr"] + 1024, rkey=rkey)
    pair.requester.completes(qp, ["SUCCESS"])
    same("what was written", pair.responder.sum(mr["mr"], off=1024, len=1024),
         pair.requester.sum(source["mr"], len=1024))
    pair.requester.do("send", qp=qp, op="write", mr=source["mr"], len=8, id=2,
                      raddr=mr["addr"] + 2048, rkey=rkey)
    # rxe checks only the region's range
    status = "REM_ACCESS_ERR" if is_ours(pair.responder) else "SUCCESS"
    pair.requester.completes(qp, [status])


def datagrams(pair):
    """UD queue pairs, and the address of the responder."""
    ends = []
    for peer in (pair.requester, pair.responder):
        made = peer.do("qp", type="ud")
        peer.do("init", qp=made["qp"], qkey=QKEY)
        peer.do("rtr", qp=made["qp"])
        peer.do("rts", qp=made["qp"])
        ends.append(made)
    ah = pair.requester.do("ah", gid=pair.responder.device["gid"], sgid=pair.requester.sgid)["ah"]
    to = {"qp": ends[0]["qp"], "ah": ah, "dqpn": ends[1]["qpn"], "qkey": QKEY, "op": "send"}
    return to, ends[1]["qp"]


def local_error(type, pair):
    """An invalid lkey: uroce stops the send queue, rxe the queue pair."""
    source = pair.requester.region(LENGTH, seed=1)
    to = datagrams(pair)[0] if type == "ud" else {"qp": pair.connect(type)[0], "op": "send"}
    pair.requester.do("send", **to, mr=source["mr"], len=64, lkey=0x00fedc00, id=1)
    status = "LOC_PROT_ERR" if is_ours(pair.requester) else "LOC_QP_OP_ERR"
    pair.requester.completes(to["qp"], [status])
    until_state(pair.requester, to["qp"], "SQE" if is_ours(pair.requester) else "ERR")


def oversized_datagram(pair):
    """Nothing is sent, and the queue pair still works."""
    source = pair.requester.region(8192, seed=1)
    room = pair.responder.region(8192, seed=2)
    to, theirs = datagrams(pair)
    pair.responder.do("recv", qp=theirs, mr=room["mr"], len=8192, id=1, times=2)
    answer = pair.requester.ask("send", **to, mr=source["mr"], len=4097, id=1)
    if is_ours(pair.requester):
        same("the one that is too long", answer, "error ibv_post_send: Invalid argument")
    else:
        pair.requester.completes(to["qp"], ["SUCCESS"])
    pair.requester.do("send", **to, mr=source["mr"], len=4096, id=2)
    pair.requester.completes(to["qp"], ["SUCCESS"])
    (got,) = pair.responder.completes(theirs, ["SUCCESS"], "recv")
    same("octets of what arrived first", got.length, 40 + 4096)


def partition_keys(pair):
    for peer in (pair.ours, pair.theirs):
        same(f"the P_Key of {peer.side}", peer.device["pkey"], 0xffff)


def wraps(pair):
    """PSNs that wrap inside a message, a READ response and a burst."""
    source = pair.requester.region(64 << 10, seed=1)
    room = pair.responder.region(64 << 10, seed=2)
    qp, theirs = pair.connect(psn=(0xfffff0, 0xfffff8))
    for operation, n in (("write", 3), ("read", 2)):
        pair.requester.do("send", qp=qp, op=operation, mr=source["mr"], len=64 << 10, id=1,
                          times=n, raddr=room["addr"], rkey=room["rkey"])
        pair.requester.completes(qp, ["SUCCESS"] * n)
        same(f"what {operation} moved", pair.requester.sum(source["mr"]),
             pair.responder.sum(room["mr"]))
    pair.responder.do("send", qp=theirs, op="write", mr=room["mr"], len=64 << 10, id=1,
                      raddr=source["addr"], rkey=source["rkey"])
    pair.responder.completes(theirs, ["SUCCESS"])


@dataclasses.dataclass
class OnTheWire:
    """The headers of both, in a transfer of 1 MiB by WRITE, a READ and an atomic."""
    name: str = "differs/headers"
    quick: bool = True
    roles: tuple = ("client", "server")
    mtu = 256
    length = 1 << 20

    def run(self, wire, role):
        with Pair(wire, role) as pair, Capture(wire.guest) as capture:
            source = pair.requester.region(self.length, seed=1)
            room = pair.responder.region(self.length, seed=2)
            qp, _ = pair.connect(requester={"mtu": self.mtu}, responder={"mtu": self.mtu})
            for operation, length in (("write", self.length), ("read", self.length), ("add", 8)):
                pair.requester.do("send", qp=qp, op=operation, mr=source["mr"], len=length, id=1,
                                  raddr=room["addr"], rkey=room["rkey"])
                pair.requester.completes(qp, ["SUCCESS"], ms=60000)
        requester = (wire.ours if role == "client" else wire.theirs)[0]
        for p in capture.packets:
            by_us = p.source == wire.ours[0]
            same("MigReq of " + p.source, p.migrated, 1 if by_us else 0)
            same("the UDP checksum of " + p.source, p.checksum, 0)
            no_less_than("the UDP source port of " + p.source, p.sport, 0xc000)
            if p.syndrome is not None:
                same("the syndrome of " + p.source, p.syndrome, 0x1f)
        outstanding = self.window(capture.packets, requester)
        if role == "server" and outstanding > 129:  # the packet being sent, and 128
            raise Failure(f"rxe had {outstanding} PSNs outstanding")
        return f"{requester} had {outstanding} PSNs outstanding at most"

    @staticmethod
    def window(packets, requester):
        """How far it sent beyond the acknowledged PSN during the WRITE."""
        acked, most = 0, 0
        for p in packets:
            if p.source == requester and p.opcode in range(0x06, 0x0c):
                most = max(most, p.psn + 1 - acked)
            elif p.source != requester and p.opcode == 0x11:
                acked = p.psn + 1
        if most == 0:
            raise Failure("no packet of a WRITE was seen")
        return most


def inject(wire, side, qpn, count, checksum=0):
    """Sends congestion notifications for a queue pair of `side` from the other side."""
    words = ["/usr/bin/python3", "-B", f"{HERE}/inject.py"]
    what = [str(qpn), str(count), str(checksum)]
    if side == "ours":
        mac = re.search(r"link/ether (\S+)", wire.rig.ip("a", "link", "show", "tap0"))[1]
        wire.guest.run([*words, "eth0", mac, wire.theirs[0], wire.ours[0], *what])
    else:
        mac = wire.guest.run(["cat", "/sys/class/net/eth0/address"]).strip()
        sh(*wire.rig.inside("a"), *words, "tap0", mac, wire.ours[0], wire.theirs[0], *what)


def await_notified(wire, before, count):
    wait_until(f"{count} counted notifications", 10, lambda: notified(wire) >= before + count)


@dataclasses.dataclass
class Notified:
    """Congestion notifications, which get no answer: rxe drops them, uroce counts them."""
    name: str = "differs/cnp"
    quick: bool = False
    roles: tuple = ("client", "server")
    count = 10

    def run(self, wire, role):
        with Pair(wire, role) as pair:
            source = pair.requester.region(LENGTH, seed=1)
            room = pair.responder.region(LENGTH, seed=2)
            made = pair.connect()
            before = notified(wire)
            for peer, number in zip((pair.requester, pair.responder), made):
                inject(wire, peer.side, peer.do("state", qp=number)["qpn"], self.count)
            await_notified(wire, before, self.count)
            pair.requester.do("send", qp=made[0], op="write", mr=source["mr"], len=LENGTH, id=1,
                              times=20, raddr=room["addr"], rkey=room["rkey"])
            pair.requester.completes(made[0], ["SUCCESS"] * 20)


@dataclasses.dataclass
class Checksums:
    """A wrong UDP checksum: the guest's kernel drops the packet, uroce ignores the checksum."""
    name: str = "differs/udp-checksum"
    quick: bool = False
    roles: tuple = (None,)  # both ends receive
    count = 10

    def run(self, wire, role):
        with Pair(wire, "client") as pair:
            ours, theirs = pair.connect()
            ours = pair.ours.do("state", qp=ours)["qpn"]
            theirs = pair.theirs.do("state", qp=theirs)["qpn"]
            for checksum, dropped in ((0, 0), (0x1234, self.count)):
                before, errors = notified(wire), self.errors(wire.guest)
                inject(wire, "ours", ours, self.count, checksum)
                inject(wire, "theirs", theirs, self.count, checksum)
                await_notified(wire, before, self.count)
                wait_until(f"{dropped} packets that the guest drops for a checksum of {checksum}",
                           10, lambda: self.errors(wire.guest) == errors + dropped)

    @staticmethod
    def errors(guest):
        names, values = re.findall(r"^Udp: (.*)$", guest.run(["cat", "/proc/net/snmp"]), re.M)
        return int(dict(zip(names.split(), values.split()))["InCsumErrors"])


def notified(wire):
    rows = wire.rig.statistics("a")["by_reason"]
    return rows["cnp_received"]


def cases():
    yield PeerCase("differs/retry-count-7", retry_count_7)
    yield PeerCase("differs/not-ready-for-long", not_ready_for_long, roles=("server",))
    yield PeerCase("differs/reads-beyond-the-limit", reads_beyond_the_limit)
    yield PeerCase("differs/no-reads-at-all", no_reads_at_all)
    for type in (1, 2):
        yield PeerCase(f"differs/window-type-{type}", functools.partial(window, type))
    for type in ("uc", "ud"):
        yield PeerCase(f"differs/local-error-of-{type}", functools.partial(local_error, type))
    yield PeerCase("differs/oversized-datagram", oversized_datagram)
    yield PeerCase("differs/partition-keys", partition_keys, roles=("client",))
    yield PeerCase("differs/psn-wraps", wraps, quick=True)
    yield OnTheWire(roles=("client",))
    yield OnTheWire(roles=("server",), quick=False)
    yield Notified()
    yield Checksums()
