# SPDX-License-Identifier: BSD-3-Clause
"""Other peers than the host's engine: an engine on another card of the guest, and Linux's rxe in another guest; and
messages of any size."""

import contextlib
import signal

import rig as rigs
from guest import Guest
from life_cases import OnCard
from nic_guest import SOCKET
from peers import Pair, Peer, same
from rig import Failure, Skipped
from wire import THEIRS, Setup

SECOND_SOCKET = "/run/second.sock"
SECOND = ("10.7.0.3", "fd07::3")  # on the guest's other card
LINUX = ("10.7.0.4", "fd07::4")
BRIDGE = "10.7.0.9"


def sizes(family):
    """Messages around one, two and three packets, to the card and from it; every octet is compared."""
    def run(wire):
        with Pair(OnCard(wire), "client", {"v4": 0, "v6": 1}[family]) as pair:
            mtu = largest_mtu(pair)
            lengths = [1, 63, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 3 * mtu + 1]
            for length in lengths:
                write_and_read(pair, length)
        return f"{len(lengths)} sizes up to {lengths[-1]}, IB MTU {mtu}"
    return run


def largest_mtu(pair):
    return min(end.device["mtu"] for end in (pair.ours, pair.theirs))


def write_and_read(pair, length):
    source = pair.requester.region(length, seed=length)
    target = pair.responder.region(length, seed=1)
    back = pair.requester.region(length, seed=2)
    whole = {"mtu": largest_mtu(pair)}  # a peer accepts at most 1024 unless it is told otherwise
    qp, _ = pair.connect(requester=whole, responder=whole)
    for operation, mr in (("write", source), ("read", back)):
        pair.requester.do("send", qp=qp, op=operation, mr=mr["mr"], len=length, id=1,
                          raddr=target["addr"], rkey=target["rkey"])
        pair.requester.completes(qp, ["SUCCESS"])
    wanted = pair.requester.sum(source["mr"])
    same(f"{length} octets that were written", pair.responder.sum(target["mr"]), wanted)
    same(f"{length} octets that were read", pair.requester.sum(back["mr"]), wanted)


# -- other cables ----------------------------------------------------------------------------------


@contextlib.contextmanager
def bridged(wire, *taps):
    """These taps are one cable; the host has an address on it, and its engine has none."""
    rig = wire.rig
    rig.ip("a", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    try:
        rig.ip("a", "address", "flush", "dev", wire.tap, "scope", "global")
        for tap in taps:
            rig.ip("a", "link", "set", tap, "mtu", "4200", "master", "br0")
        rig.ip("a", "link", "set", "br0", "mtu", "4200", "up")
        rig.ip("a", "address", "add", f"{BRIDGE}/24", "dev", "br0")
        yield
    finally:
        rig.ip("a", "link", "del", "br0")
        wire.choose(wire.guest.card.index)


def in_guest(wire, line, server_socket, client_socket):
    """A pair of programs, both in the guest with the cards."""
    port, guest = wire.rig.port(), wire.guest
    words = line.split()
    words = [words[0], "-d", "uroce0", "-x", "1", "-F", "-u", "20", "-p", str(port), *words[1:]]
    server = guest.verbs(words, server_socket)
    guest.listens(port, server)
    wire.succeed(guest.verbs([*words, "127.0.0.1"], client_socket), words[0], 120)
    wire.succeed(server, words[0], 30)


def two_engines(wire):
    """Two engines on two cards of one guest, joined by a cable, each to the other."""
    guest = wire.guest
    if len(guest.cards) == 1:
        raise Skipped("this needs a second card: choose two with --nic, or all")
    other = guest.cards[(guest.card.index + 1) % len(guest.cards)]
    setup = Setup(mtu=4200, addresses=f"{SECOND[0]}/24,{SECOND[1]}/64")
    with bridged(wire, wire.tap, other.tap):
        second = guest.start(guest.engine_words(setup, other, SECOND_SOCKET))
        try:
            guest.await_engine(second, socket=SECOND_SOCKET)
            in_guest(wire, "ib_write_bw -s 65536 -n 40", SOCKET, SECOND_SOCKET)
            in_guest(wire, "ib_read_bw -s 65536 -n 40", SOCKET, SECOND_SOCKET)
            in_guest(wire, "ib_send_bw -s 65536 -n 40", SECOND_SOCKET, SOCKET)
        finally:
            guest.signal(second, signal.SIGTERM)
            status, output = guest.finish(second, 30)
        if status != 0:
            raise Failure(f"the engine on {other.nic.name} ended with {status}: {output[-200:]}")
    return f"with {other.nic.name}"


# -- Linux -----------------------------------------------------------------------------------------


def linux(wire):
    """The second guest. It also serves the other cards."""
    if wire.linux is None:
        rig = wire.rig
        rigs.sh(*rig.inside("a"), "ip", "tuntap", "add", "linux0", "mode", "tap")
        rig.ip("a", "link", "set", "linux0", "mtu", "4200", "master", "br0", "up")
        wire.linux = Guest(rig, "a", "linux0", LINUX, 4200, rig.build / "interop")
    else:
        wire.rig.ip("a", "link", "set", "linux0", "master", "br0")
        # The engine on this card announced its addresses before this guest could hear that, so it still has those
        # of the last card.
        wire.linux.run(["ip", "neighbour", "flush", "dev", "eth0"])
    return wire.linux


def rping(server, client, address, port):
    """Each end compares the data that comes back (-V)."""
    words = ["-a", address, "-p", str(port), "-C", "10", "-V"]
    number = server.start(["rping", "-s", *words])
    server.listens(number, port)
    for end, which in ((client, client.start(["rping", "-c", *words])), (server, number)):
        status, output = end.finish(which, 60)
        if status != 0:
            raise Failure(f"rping at {address} ended with {status}: {output.strip()[-200:]}")


class OnLinux:
    """The parts of the second guest that a Peer and rping need."""

    def __init__(self, rig, guest):
        self.rig, self.guest, self.linux = rig, guest, guest
        self.start, self.finish = guest.start, guest.finish

    def listens(self, number, _):
        """The kernel listens, not the program; it shows that in its table of ids."""
        rigs.wait_until("rping in Linux's guest", 30, lambda: self.linux.output(number)[0] is not None
                        or "LISTEN" in self.linux.run(["rdma", "resource", "show", "cm_id"]), 0.2)


class CardAndLinux(Pair):
    """The requester is on the card."""

    def __init__(self, card, linux):
        self.ours = self.theirs = None
        try:
            self.ours, self.theirs = Peer(card, "theirs"), Peer(linux, "theirs")
        except Failure:
            self.__exit__()
            raise
        self.requester, self.responder = self.ours, self.theirs


def rxe(wire):
    """rping in both directions and both families, and messages around the MTU."""
    with bridged(wire, wire.tap):
        card, other = OnCard(wire), OnLinux(wire.rig, linux(wire))
        for family in (0, 1):
            rping(card, other, THEIRS[family], wire.rig.port())
            rping(other, card, LINUX[family], wire.rig.port())
        lengths = [1, 4095, 4096, 4097, 20000]
        with CardAndLinux(card, other) as pair:
            for length in lengths:
                write_and_read(pair, length)
    return f"rping -V from and to the card, WRITE and READ of {lengths[-1]} octets and less"
