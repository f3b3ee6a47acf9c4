# SPDX-License-Identifier: BSD-3-Clause
"""A row of the table: an unmodified program at each end, one on rxe, one on uroce."""

import dataclasses
import typing

from rig import Failure


@dataclasses.dataclass
class Wire:
    rig: typing.Any
    guest: typing.Any
    ours: tuple
    theirs: tuple


@dataclasses.dataclass
class ProgramCase:
    """`words` are the program and its options, the same at both ends but for device and address."""
    name: str
    words: list
    quick: bool = False
    limit: int = 60
    roles: tuple = ("client", "server")
    family: int = 0  # of the GIDs: 0 IPv4, 1 IPv6

    def run(self, wire, role):
        port = wire.rig.port()
        words = [*self.words, "-p", str(port)]
        ours = [*words, *self.gid(self.our_gid())]
        theirs = [*words, "-d", "rxe0", *self.gid(self.their_gid())]
        if role == "client":
            number = wire.guest.start(theirs)
            wire.guest.listens(port)
            program = wire.rig.program("a", [*ours, wire.theirs[0]])
            program.succeed(self.limit)
            status, output = wire.guest.finish(number, self.limit)
        else:
            program = wire.rig.program("a", ours)
            program.await_listening(port)
            number = wire.guest.start([*theirs, wire.ours[0]])
            status, output = wire.guest.finish(number, self.limit)
            if status == 0:
                program.succeed(self.limit)
        program.end()
        if status != 0:
            raise Failure(f"in the guest, {self.words[0]} ended with {status}: "
                          f"{output.strip()[-200:]} (ours: {program.tail()})")

    def gid(self, index):
        return ["-g" if "pingpong" in self.words[0] else "-x", str(index)]

    def our_gid(self):
        return 2 if self.family else 1  # after the link-local one and the IPv4 one

    def their_gid(self):
        return 2 if self.family else 1
