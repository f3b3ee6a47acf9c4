# SPDX-License-Identifier: BSD-3-Clause
"""The guest disappears in the middle of a transfer, and later another one appears."""

import dataclasses
import re

from case import GID, ProgramCase
from rig import Failure, wait_until


def sent(wire):
    return wire.rig.statistics("a")["tx_packets"]


@dataclasses.dataclass
class RebootCase:
    """perftest without an end. uroce's program must end by itself, with the status for a peer that
    does not answer. Then the same engine talks to the next guest."""
    name: str
    how: str  # reboot: the same machine restarts; vanish: it is killed and replaced
    quick: bool = False
    roles: tuple = ("client", "server")
    # both ends write, because a program that only waits for data would not notice
    words = ("ib_write_bw", "-F", "-b", "-s", "65536", "-n", "5000000")
    limit = 60

    def run(self, wire, role):
        port = str(wire.rig.port())
        ours = [*self.words, "-p", port, "-x", str(GID["v4"])]
        theirs = [*ours, "-d", "rxe0"]
        before = sent(wire)
        if role == "client":
            peer = wire.guest.start(theirs)
            wire.guest.listens(int(port), peer)
            program = wire.rig.program("a", [*ours, wire.theirs[0]])
        else:
            program = wire.rig.program("a", ours)
            program.await_listening(int(port))
            peer = wire.guest.start([*theirs, wire.ours[0]])
        self.await_transfer(wire, before, program, peer)
        getattr(wire.guest, self.how)()
        status = program.wait(self.limit)
        if status == 0 or not re.search(r"status 12\b|Transport retry", program.output(), re.I):
            raise Failure(f"{program.name} ended with {status} and not for want of an answer: "
                          f"{program.tail()}")
        if self.how == "reboot":
            wire.guest.await_boot()
        else:
            wire.guest.start_machine()
        ProgramCase("", ["ibv_rc_pingpong", "-n", "100"]).run(wire, role)

    def await_transfer(self, wire, before, program, peer):
        try:
            wait_until("a transfer of 1000 packets", self.limit,
                       lambda: sent(wire) > before + 1000)
        except Failure as failure:
            raise Failure(f"{failure}; {sent(wire) - before} packets were sent; uroce's end: "
                          f"{program.tail()}; Linux's end: {wire.guest.said(peer)}") from None


def cases():
    # the guest needs 14 s to come back
    yield RebootCase("reboot/restarts", "reboot", quick=True, roles=("client",))
    yield RebootCase("reboot/restarts", "reboot", roles=("server",))
    yield RebootCase("reboot/vanishes", "vanish")
