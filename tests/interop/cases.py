# SPDX-License-Identifier: BSD-3-Clause
"""The table of cases: an unmodified program at each end, one on rxe in the guest, one on uroce."""

import dataclasses
import re
import time
import typing


@dataclasses.dataclass
class Wire:
    rig: typing.Any
    guest: typing.Any
    ours: tuple
    theirs: tuple


@dataclasses.dataclass
class Case:
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
            from rig import Failure
            raise Failure(f"in the guest, {self.words[0]} ended with {status}: "
                          f"{output.strip()[-200:]} (ours: {program.tail()})")

    def gid(self, index):
        return ["-g" if "pingpong" in self.words[0] else "-x", str(index)]

    def our_gid(self):
        return 2 if self.family else 1  # after the link-local one and the IPv4 one

    def their_gid(self):
        return 2 if self.family else 1


def pingpongs():
    for kind in ("rc", "uc", "ud", "srq"):
        yield Case(f"v4/{kind}_pingpong", [f"ibv_{kind}_pingpong", "-n", "300"],
                   quick=kind in ("rc", "ud"))
        yield Case(f"v6/{kind}_pingpong", [f"ibv_{kind}_pingpong", "-n", "300"], family=1)
    yield Case("v4/rc_pingpong-events", ["ibv_rc_pingpong", "-n", "300", "-e"])
    for mtu in (256, 512, 1024, 2048, 4096):
        yield Case(f"v4/rc_pingpong-mtu{mtu}", ["ibv_rc_pingpong", "-n", "200", "-m", str(mtu)],
                   quick=mtu == 256)


def perftests():
    iterations = {2: 500, 4096: 300, 65536: 100, 1048576: 10}
    for what in ("write", "read", "send"):
        for size, n in iterations.items():
            yield Case(f"v4/{what}_bw-{size}",
                       [f"ib_{what}_bw", "-F", "-s", str(size), "-n", str(n)],
                       quick=size == 65536)
        yield Case(f"v4/{what}_lat", [f"ib_{what}_lat", "-F", "-s", "8", "-n", "300"])
        yield Case(f"v4/{what}_bw-qps", [f"ib_{what}_bw", "-F", "-s", "4096", "-n", "100",
                                         "-q", "4"])
        yield Case(f"v4/{what}_bw-both", [f"ib_{what}_bw", "-F", "-s", "4096", "-n", "200", "-b"])
    for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
        yield Case(f"v4/atomic_bw-{kind}", ["ib_atomic_bw", "-F", "-A", kind, "-n", "300"],
                   quick=kind == "FETCH_AND_ADD")
        yield Case(f"v4/atomic_lat-{kind}", ["ib_atomic_lat", "-F", "-A", kind, "-n", "200"])
    yield Case("v4/send_bw-events", ["ib_send_bw", "-F", "-s", "4096", "-n", "200", "-e"])
    # Nobody acknowledges: what the emulated guest cannot take is lost, and perftest waits for it.
    for service in ("UC", "UD"):
        size = "2048" if service == "UD" else "4096"
        yield Case(f"v4/send_bw-{service}", ["ib_send_bw", "-F", "-c", service, "-s", size,
                                             "-n", "100", "-t", "4"])
        yield Case(f"v4/send_lat-{service}", ["ib_send_lat", "-F", "-c", service, "-s", "64",
                                              "-n", "200"])
    yield Case("v4/write_bw-UC", ["ib_write_bw", "-F", "-c", "UC", "-s", "65536", "-n", "100"])


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
            from rig import Failure
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
                from rig import Failure
                raise Failure(f"the client of {self.name} ended with {status}: "
                              f"{output.strip()[-200:]}")
            time.sleep(0.1)


def connections():
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


CASES = [*pingpongs(), *perftests(), *connections()]
