# SPDX-License-Identifier: BSD-3-Clause
"""The programs of libibverbs and perftest, over connections that they make themselves."""

from case import ProgramCase as Case


def pingpongs():
    for kind in ("rc", "uc", "ud", "srq"):
        yield Case(f"v4/{kind}_pingpong", [f"ibv_{kind}_pingpong", "-n", "300"],
                   quick=kind in ("rc", "ud"))
        yield Case(f"v6/{kind}_pingpong", [f"ibv_{kind}_pingpong", "-n", "300"], family="v6")
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


def cases():
    yield from pingpongs()
    yield from perftests()
