# SPDX-License-Identifier: BSD-3-Clause
"""A row of the table: an unmodified program at each end, one on rxe, one on uroce."""

import dataclasses
import typing

from rig import Failure

# The engine's and rxe's GID tables begin alike: the link-local address, then the others.
GID = {"link-local": 0, "v4": 1, "v6": 2}


class TheirsStays(Failure):
    """uroce's program succeeded, but the guest's does not end."""


@dataclasses.dataclass
class Wire:
    """The engine and the guest; `addresses` are those of the interfaces, IPv4 first."""
    rig: typing.Any
    guest: typing.Any
    ours: tuple
    theirs: tuple
    side: str = "a"  # the engine's side


@dataclasses.dataclass
class ProgramCase:
    """`words` are the program and its options, the same at both ends except for device and address.
    """
    name: str
    words: list
    quick: bool = False
    limit: int = 60
    roles: tuple = ("client", "server")
    family: str = "v4"  # of the GIDs
    side: str = "a"  # the engine's side

    def run(self, wire, role):
        port = wire.rig.port()
        words = [*self.words, "-p", str(port)]
        ours = [*words, *self.gid(self.our_gid(wire))]
        theirs = [*words, "-d", "rxe0", *self.gid(self.their_gid(wire))]
        if role == "client":
            number = wire.guest.start(theirs)
            wire.guest.listens(port, number)
            program = wire.rig.program(self.side, [*ours, wire.theirs[0]])
            try:
                program.succeed(self.limit)
            except Failure as failure:
                raise Failure(f"{failure} (in the guest: {wire.guest.said(number)})") from None
            status, output = wire.guest.finish(number, self.limit)
        else:
            program = wire.rig.program(self.side, ours)
            program.await_listening(port)
            number = wire.guest.start([*theirs, wire.ours[0]])
            status, output = wire.guest.finish(number, self.limit)
            if status == 0:
                program.succeed(self.limit)
        program.end()
        if status != 0:
            kind = TheirsStays if status == "timeout" and role == "client" else Failure
            raise kind(f"in the guest, {self.words[0]} ended with {status}: "
                       f"{output.strip()[-200:]} (ours: {program.tail()})")

    def gid(self, index):
        return ["-g" if "pingpong" in self.words[0] else "-x", str(index)]

    def our_gid(self, wire):
        return GID[self.family]

    def their_gid(self, wire):
        return GID[self.family]
