# SPDX-License-Identifier: BSD-3-Clause
"""
rsockets with rdma-core's librdmacm in the guest: the same messages, credits and tables at both ends.

Not here, and why: udpong (datagram rsockets of rdma-core 44 do not work over RoCE, of rxe with itself
neither: for each queue pair they make an address handle without a GRH, and rconnect() fails).
"""

from cm_cases import CmCase

FORMAT = {"v4": "ip", "v6": "ip6"}  # as rstream calls them


def cases():
    for v, form in FORMAT.items():
        both = f"-f {form} -p {{port}}"
        # async: Linux tells of the end of a stream together with its last octets, which its own
        # rstream takes for an error: as a client it fails with any server that closes at once.
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
