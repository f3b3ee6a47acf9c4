# SPDX-License-Identifier: BSD-3-Clause
"""The programs of libibverbs and perftest, which make their connections themselves."""

from case import ProgramCase as Case


def pingpongs():
    for kind in ("rc", "uc", "ud", "srq"):
        yield Case(f"v4/{kind}_pingpong", [f"ibv_{kind}_pingpong", "-n", "100", "-r", "40"],
                   quick=kind in ("rc", "ud"))
        yield Case(f"v6/{kind}_pingpong", [f"ibv_{kind}_pingpong", "-n", "100", "-r", "40"], family="v6")
        yield Case(f"v4/{kind}_pingpong-events", [f"ibv_{kind}_pingpong", "-n", "100", "-r", "40", "-e"])
    for mtu in (256, 512, 1024, 2048, 4096):
        yield Case(f"v4/rc_pingpong-mtu{mtu}", ["ibv_rc_pingpong", "-n", "100", "-r", "40", "-m", str(mtu)],
                   quick=mtu == 256)


SIZES = {2: 300, 4096: 200, 65536: 60, 1048576: 8}  # octets: number of messages


def perftest(name, program, *words, family="v4", quick=False):
    # 0.3 s instead of 0.07 s until a retransmission, because a guest may be slow
    return Case(f"{family}/{name}", [program, "-F", "-u", "16", *words], family=family, quick=quick)


def transfers(what):
    """One operation: every size for throughput and for latency, and its other options."""
    for kind in ("bw", "lat"):
        for size, n in SIZES.items():
            yield perftest(f"{what}_{kind}-{size}", f"ib_{what}_{kind}", "-s", str(size), "-n",
                           str(n), quick=size == 65536 and kind == "bw")
        yield perftest(f"{what}_{kind}", f"ib_{what}_{kind}", "-s", "4096", "-n", "200",
                       family="v6")
    words = [f"ib_{what}_bw", "-s", "4096", "-n", "100"]
    yield perftest(f"{what}_bw-qps", *words, "-q", "4")
    yield perftest(f"{what}_bw-both", *words, "-b")
    yield perftest(f"{what}_bw-both-qps", *words, "-b", "-q", "4")
    if what != "write":  # perftest has no events for WRITE
        yield perftest(f"{what}_bw-events", *words, "-e")
        yield perftest(f"{what}_lat-events", f"ib_{what}_lat", "-s", "64", "-n", "100", "-e")
    for mtu in (256, 4096):
        yield perftest(f"{what}_bw-mtu{mtu}", f"ib_{what}_bw", "-s", "1048576", "-n", "5", "-m",
                       str(mtu))


def atomics():
    for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
        words = ["-A", kind, "-n", "300"]
        yield perftest(f"atomic_bw-{kind}", "ib_atomic_bw", *words, quick=kind == "FETCH_AND_ADD")
        yield perftest(f"atomic_bw-{kind}", "ib_atomic_bw", *words, family="v6")
        yield perftest(f"atomic_bw-{kind}-both-qps", "ib_atomic_bw", *words, "-b", "-q", "4")
        yield perftest(f"atomic_bw-{kind}-events", "ib_atomic_bw", *words, "-e")
        yield perftest(f"atomic_lat-{kind}", "ib_atomic_lat", "-A", kind, "-n", "200")


def unreliable():
    # No acknowledgements: the emulated guest loses what it cannot take, and perftest would wait for
    # it.
    for service in ("UC", "UD"):
        size = "2048" if service == "UD" else "4096"
        for family in ("v4", "v6"):
            yield perftest(f"send_bw-{service}", "ib_send_bw", "-c", service, "-s", size,
                           "-n", "100", "-t", "4", family=family)
            yield perftest(f"send_lat-{service}", "ib_send_lat", "-c", service, "-s", "64",
                           "-n", "200", family=family)
    yield perftest("write_bw-UC", "ib_write_bw", "-c", "UC", "-s", "65536", "-n", "100")
    yield perftest("write_lat-UC", "ib_write_lat", "-c", "UC", "-s", "4096", "-n", "100")


def cases():
    yield from pingpongs()
    for what in ("write", "read", "send"):
        yield from transfers(what)
    yield from atomics()
    yield from unreliable()
