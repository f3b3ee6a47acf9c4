# SPDX-License-Identifier: BSD-3-Clause
"""Programs that find each other through rdma_cm."""

import dataclasses
import re
import time

from rig import Failure


@dataclasses.dataclass
class CmCase:
    """
    Programs that find each other through rdma_cm. Nothing outside tells that a server listens: a
    client that was refused is started again until it is there.
    """
    name: str
    server: str
    client: str
    quick: bool = False
    limit: int = 60
    roles: tuple = ("client", "server")
    family: int = 0
    refused = re.compile(r"REJECTED|refused|UNREACHABLE", re.I)

    def run(self, wire, role):
        theirs_serve = role == "client"
        values = {"port": wire.rig.port(), "any": ("0.0.0.0", "::")[self.family],
                  "format": ("ip", "ipv6")[self.family],
                  "server": (wire.theirs if theirs_serve else wire.ours)[self.family]}
        server, client = (line.format(**values).split() for line in (self.server, self.client))
        if theirs_serve:
            number = wire.guest.start(server)
            self.until_met(lambda: self.ours_once(wire, client))
            status, output = wire.guest.finish(number, self.limit)
        else:
            program = wire.rig.program("a", server)
            status, output = self.until_met(lambda: self.theirs_once(wire, client))
            program.succeed(self.limit)
            program.end()
        if status != 0:
            raise Failure(f"in the guest, {self.name} ended with {status}: "
                          f"{output.strip()[-200:]}")

    def ours_once(self, wire, words):
        program = wire.rig.program("a", words)
        status = program.wait(self.limit)
        program.end()
        return status, program.output()

    def theirs_once(self, wire, words):
        return wire.guest.finish(wire.guest.start(words), self.limit)

    def until_met(self, once):
        end = time.monotonic() + self.limit
        while True:
            status, output = once()
            if status == 0:
                return status, output
            if not self.refused.search(output) or time.monotonic() > end:
                    raise Failure(f"the client of {self.name} ended with {status}: "
                              f"{output.strip()[-200:]}")
            time.sleep(0.1)


def cases():
    for family in (0, 1):
        v = ("v4", "v6")[family]
        yield CmCase(f"{v}/rping", "rping -s -a {any} -p {port} -C 20 -V",
                     "rping -c -a {server} -p {port} -C 20 -V", quick=True, family=family)
        yield CmCase(f"{v}/ucmatose", "ucmatose -b {any} -f {format} -p {port} -c 5 -C 10 -S 1000",
                     "ucmatose -s {server} -f {format} -p {port} -c 5 -C 10 -S 1000",
                     quick=family == 0, family=family)
        yield CmCase(f"{v}/udaddy", "udaddy -b {any} -f {format} -c 3 -C 5 -S 512",
                     "udaddy -s {server} -f {format} -c 3 -C 5 -S 512",
                     quick=family == 0, family=family)
