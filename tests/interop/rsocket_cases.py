# SPDX-License-Identifier: BSD-3-Clause
"""
rsockets with rdma-core's librdmacm in the guest: the same messages, credits and tables at both ends.

Not here: udpong (datagram rsockets of rdma-core 44 do not work over RoCE, not even of rxe with
itself: they make an address handle without a GRH, and rconnect() fails); iperf3 with a server in
the guest (with rdma-core's librspreload it asks for TCP_INFO without end; a client on rxe fails,
too).
"""

import dataclasses
import hashlib

from cm_cases import CmCase
from ends import ends
from rig import Failure

FORMAT = {"v4": "ip", "v6": "ip6"}  # in rstream's words
PRELOAD = "env LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so "


@dataclasses.dataclass
class CopyCase(CmCase):
    """Copies a file and compares the octets."""
    stays: bool = True

    def values(self, wire, address):
        return super().values(wire, address) | {"copy": f"/tmp/rcopy-{wire.rig.prefix}"}

    def run(self, wire, role):
        super().run(wire, role)
        values = self.values(wire, ("", ""))
        server_end, _ = ends(wire, role)
        status, said = server_end.finish(server_end.start(["sha256sum", values["copy"]]), 30)
        server_end.finish(server_end.start(["rm", "-f", values["copy"]]), 10)
        with open(self.client.split()[1].format(**values), "rb") as sent:
            wanted = hashlib.file_digest(sent, "sha256").hexdigest()
        if status != 0 or said.split()[0] != wanted:
            raise Failure(f"the copy differs: {said.strip()}")


def cases():
    for v, form in FORMAT.items():
        both = f"-f {form} -p {{port}}"
        # async: Linux reports the end of a stream together with its last octets, which its own
        # rstream treats as an error: as a client it fails with any server that closes at once.
        for name, options, quick in (
                ("blocking", "-T b -T v -C 100 -S 70000", v == "v4"),
                ("async", "-T a -T v -I 20 -C 5 -S 3000", False),
                ("nonblocking", "-T n -C 100 -S 70000", False),
                ("small", "-T b -I 500 -C 1 -S 64", False)):
            yield CmCase(f"{v}/rstream-{name}", f"rstream -b {{any}} {both} {options}",
                         f"rstream -s {{server}} {both} {options}", quick=quick,
                         roles=("client",) if name == "async" else ("client", "server"))
        yield CmCase(f"{v}/riostream", f"riostream -b {{any}} {both} -T b -T v -I 5 -C 5 -S 70000",
                     f"riostream -s {{server}} {both} -T b -T v -I 5 -C 5 -S 70000")
    yield CopyCase("v4/rcopy", "rcopy -p {port}",
                   "rcopy {build}/apps/uroced {server}:{copy} -p {port}")
    yield CmCase("v4/iperf3", PRELOAD + "iperf3 -s -1 -B {server} -p {port}",
                 PRELOAD + "iperf3 -c {server} -p {port} -t 1", roles=("server",))
