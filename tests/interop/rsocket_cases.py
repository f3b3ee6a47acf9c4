# SPDX-License-Identifier: BSD-3-Clause
"""rsockets with rdma-core's librdmacm in the guest: the same messages, credits and headers at both ends."""

import dataclasses
import re

from cm_cases import CmCase
from rig import Failure


@dataclasses.dataclass
class RsocketCase(CmCase):
    refused = re.compile(r"refused|in progress|unreachable", re.I)


@dataclasses.dataclass
class DatagramCase(RsocketCase):
    """A server that never ends by itself. A client that met nobody yet, or lost a datagram (of which
    its program makes one more for ever), is started again."""

    def run(self, wire, role):
        theirs_serve = role == "client"
        values = {"port": wire.rig.port(),
                  "server": (wire.theirs if theirs_serve else wire.ours)[self.family]}
        server, client = (line.format(**values).split() for line in (self.server, self.client))
        if theirs_serve:
            number = wire.guest.start(server)
            try:
                self.several(lambda: self.ours_once(wire, client))
            finally:
                wire.guest.signal(number, 9)
                wire.guest.finish(number, 10)
        else:
            program = wire.rig.program("a", server)
            try:
                self.several(lambda: self.theirs_once(wire, client))
            finally:
                program.end()

    def ours_once(self, wire, words):
        program = wire.rig.program("a", words)
        try:
            return program.wait(10), program.output()
        except Failure as failure:
            return "timeout", str(failure)
        finally:
            program.end()

    def theirs_once(self, wire, words):
        return wire.guest.finish(wire.guest.start(words), 10)

    def several(self, once):
        for _ in range(4):
            status, output = once()
            if status == 0:
                return
        raise Failure(f"the client of {self.name} ended with {status}: {output.strip()[-200:]}")


def cases():
    for family in (0, 1):
        v, form = ("v4", "v6")[family], ("ip", "ip6")[family]
        both = f"-f {form} -p {{port}}"
        # async: Linux tells of the end of a stream together with its last octets, which its own
        # rstream takes for an error: as a client it fails with any server that closes at once.
        for name, options, quick in (
                ("blocking", "-T b -T v -C 100 -S 70000", family == 0),
                ("async", "-T a -T v -I 20 -C 5 -S 3000", False),
                ("nonblocking", "-T n -C 100 -S 70000", False),
                ("small", "-T b -I 500 -C 1 -S 64", False)):
            yield RsocketCase(f"{v}/rstream-{name}", f"rstream -b {{any}} {both} {options}",
                              f"rstream -s {{server}} {both} {options}", quick=quick,
                              roles=("client",) if name == "async" else ("client", "server"),
                              family=family)
        yield RsocketCase(f"{v}/riostream", f"riostream -b {{any}} {both} -T b -T v -I 5 -C 5 -S 70000",
                          f"riostream -s {{server}} {both} -T b -T v -I 5 -C 5 -S 70000",
                          family=family)
        yield DatagramCase(f"{v}/udpong", "udpong -b {server} -p {port} -T b",
                           "udpong -s {server} -p {port} -T b -C 200 -S 500", family=family)
