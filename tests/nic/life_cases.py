# SPDX-License-Identifier: BSD-3-Clause
"""Events of a card while an engine has it: its link, its removal, a dead engine."""

import signal
import time

from peers import Peer
from rig import Failure, wait_until

DEVICE_FATAL, PORT_ACTIVE, PORT_ERR = "8", "9", "10"


class OnCard:
    """The parts of a guest that a Peer needs: it starts programs on the guest's engine."""

    def __init__(self, wire):
        self.rig, self.guest, self.address = wire.rig, self, wire.guest.address
        self.start, self.finish = wire.guest.verbs, wire.guest.finish
        self.wire = wire

    def listens(self, number, port):
        self.wire.guest.listens_by_cm(port, number)


def hears(peer, event, limit=20, before=()):
    """The peer's next event must be this one; `before` and those of addresses may come before it."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        got = peer.event(int(1000 * (end - time.monotonic())) + 1)
        if got is not None and got[0] == event:
            return
        if got is not None and got[0] not in before and got[0] in (DEVICE_FATAL, PORT_ACTIVE, PORT_ERR):
            raise Failure(f"the program got event {got[0]}, not {event}")
    raise Failure(f"event {event} did not come within {limit} s")


def link(wire):
    """A program is told of the link, and a pair that runs meanwhile ends normally."""
    peer = Peer(OnCard(wire), "theirs")
    try:
        port = wire.rig.port()
        words = ["ib_write_bw", "-d", "uroce0", "-x", "1", "-F", "-u", "20", "-p", str(port),
                 "-s", "65536", "-n", "2000"]
        number = wire.guest.verbs(words)
        wire.guest.listens(port, number)
        client = wire.rig.program("a", [*words, "10.8.0.2"], name="ib_write_bw-client")
        before = wire.guest.statistics()["rx_packets"]
        wait_until("the traffic", 20,
                   lambda: wire.guest.statistics()["rx_packets"] > before + 500, 0.1)
        wire.guest.set_link(False)
        hears(peer, PORT_ERR)
        if not client.alive():
            raise Failure("the pair had ended before the link went down")
        wire.guest.set_link(True)
        hears(peer, PORT_ACTIVE)
        client.succeed(180)
        wire.succeed(number, "ib_write_bw", 30)
    finally:
        wire.guest.set_link(True)
        peer.close()


def killed(wire):
    """A killed engine leaves nothing that keeps the next one from the card."""
    setup = wire.guest.setup
    wire.guest.end_engine(signal.SIGKILL)
    wire.guest.start_engine(setup)
    return wire.measured("ib_write_bw -s 65536 -n 60")


def ended(wire):
    setup = wire.guest.setup
    status, output = wire.guest.end_engine()
    if status != 0:
        raise Failure(f"at SIGTERM the guest's engine ended with {status}: {output.strip()[-200:]}")
    wire.guest.start_engine(setup)
    return wire.measured("ib_write_bw -s 65536 -n 60")


def removed(wire):
    """The card is removed: the engine says so and ends, and its programs are told."""
    engine = wire.guest.engine
    peer = Peer(OnCard(wire), "theirs")
    try:
        wire.guest.monitor.do("device_del", id=wire.guest.card.id)
        hears(peer, DEVICE_FATAL, before=(PORT_ERR,))  # a card that was removed has no link, either
    finally:
        peer.close()
    status, output = wire.guest.finish(engine, 30)
    wire.guest.engine = None
    if status in (0, "timeout"):
        raise Failure(f"the engine ended with {status}")
    lines = [line for line in output.splitlines() if "removed" in line]
    if len(lines) != 1 or wire.guest.bdf not in lines[0]:
        raise Failure(f"the engine did not say what happened: {output.strip()[-300:]}")
    wire.guest.monitor.await_event("DEVICE_DELETED", 30)
    wire.guest.plug()
    return lines[0]
