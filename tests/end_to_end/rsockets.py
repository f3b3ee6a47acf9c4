# SPDX-License-Identifier: BSD-3-Clause
"""rsockets: rdma-core's own programs, and an ordinary TCP program with Debian's librspreload.so.

Nothing outside of an engine shows that an rsocket listens, so a client that was refused is started
again.
"""

import filecmp
import os
import re
import time

from rig import ADDRESS, Failure, sh

PLACES = ("same", "veth4200", "netdev1500")
FAMILIES = {"v4": 0, "v6": 1}
ANY = {"v4": "0.0.0.0", "v6": "::"}
FORMAT = {"v4": "ip", "v6": "ip6"}
PRELOAD = "env LD_PRELOAD=librspreload.so "

# (name, server's words, client's words, quick). Most use blocking calls: two ends that spin, and an
# engine between them, would need a CPU each.
ROWS = [
    ("rstream", "rstream -b {any} -f {format} -p {port} -T b",
     "rstream -s {server} -f {format} -p {port} -T b", False),
    ("rstream-all", "rstream -b {any} -f {format} -p {port} -S all",
     "rstream -s {server} -f {format} -p {port} -S all", False),
    ("rstream-blocking", "rstream -b {any} -f {format} -p {port} -T b -T v -C 200 -S 70000",
     "rstream -s {server} -f {format} -p {port} -T b -T v -C 200 -S 70000", True),
    ("rstream-nonblocking", "rstream -b {any} -f {format} -p {port} -T n -T v -C 200 -S 70000",
     "rstream -s {server} -f {format} -p {port} -T n -T v -C 200 -S 70000", False),
    ("rstream-async", "rstream -b {any} -f {format} -p {port} -T a -T v -I 100 -C 5 -S 3000",
     "rstream -s {server} -f {format} -p {port} -T a -T v -I 100 -C 5 -S 3000", True),
    ("rstream-resolve", "rstream -b {any} -f {format} -p {port} -T r -T b -C 100 -S 1000",
     "rstream -s {server} -f {format} -p {port} -T r -T b -C 100 -S 1000", False),
    ("riostream", "riostream -b {any} -f {format} -p {port} -T b -T v -I 5 -C 10 -S 70000",
     "riostream -s {server} -f {format} -p {port} -T b -T v -I 5 -C 10 -S 70000", True),
    ("iperf3", PRELOAD + "iperf3 -s -1 -B {server} -p {port}",
     PRELOAD + "iperf3 -c {server} -p {port} -t 1", True),
    ("iperf3-both-ways", PRELOAD + "iperf3 -s -1 -B {server} -p {port}",
     PRELOAD + "iperf3 -c {server} -p {port} -t 1 --bidir -P 2", False),
]
# Datagram rsockets find each other through UDP of the kernel, which must have the addresses, too.
DATAGRAM_PLACES = ("same", "netdev1500")
DATAGRAM_ROWS = [
    ("udpong-echo", "udpong -b {server} -p {port} -T b",
     "udpong -s {server} -p {port} -T b -T e -C 500 -S 1000", False),
    ("udpong-async", "udpong -b {server} -p {port} -T a",
     "udpong -s {server} -p {port} -T a -T e -C 200 -S 500", False),
    ("udpong-fragments", "udpong -b {server} -p {port} -T b",
     "udpong -s {server} -p {port} -T b -T e -C 200 -S 1500", False),
    ("udpong", "udpong -b {server} -p {port} -T b", "udpong -s {server} -p {port} -T b -C 500 -S 64",
     True),
]
STAYS = {"udpong"}  # servers that do not end by themselves
REFUSED = re.compile(r"refused|in progress|unreachable", re.I)


def client_until_met(rig, server, words, limit):
    """Starts the client until it has found its server; it must end with status 0."""
    end = time.monotonic() + limit
    while True:
        client = rig.program(rig.sides[1], ["stdbuf", "-oL", *words], name="client")
        try:
            status = client.wait(limit)
        finally:
            client.end()
        if status == 0:
            return client
        if not REFUSED.search(client.output()) or not server.alive() or time.monotonic() > end:
            raise Failure(f"{words} ended with {status}: {client.tail()} "
                          f"(server: {server.tail()})")
        time.sleep(0.1)


def refuse_tcp(rig, port):
    """The kernel must not know the port: the preload library did not fall back to TCP."""
    tables = sh(*rig.inside(rig.sides[0]), "cat", "/proc/net/tcp", "/proc/net/tcp6")
    if re.search(rf":{port:04X} ", tables):
        raise Failure(f"TCP port {port} of the kernel is in use")


def said(client):
    lines = [line.strip() for line in client.output().splitlines() if re.search(r"\d", line)]
    summary = [line for line in lines if "receiver" in line]
    return re.sub(r"\s+", " ", (summary or lines or ["done"])[-1])[:70]


def run_row(rig, family, row, limit=400):
    name, server_line, client_line, _ = row
    values = {"server": ADDRESS[rig.sides[0]][FAMILIES[family]], "any": ANY[family],
              "port": rig.port(), "format": FORMAT[family]}
    server = rig.program(rig.sides[0], server_line.format(**values).split(), name=f"{name}-server")
    try:
        client = client_until_met(rig, server, client_line.format(**values).split(), limit)
        refuse_tcp(rig, values["port"])
        if server_line.split()[0] not in STAYS:
            server.succeed(20)
    finally:
        server.end()
    rig.check_healthy()
    return said(client)


def kernel_has_addresses(rig):
    """A single engine on its host has addresses that the kernel does not know; the kernel gets
    both. (With only one, getaddrinfo() without hints would map IPv4 addresses to IPv6.)"""
    if rig.sides[0] == rig.sides[1]:
        for address, length in zip(ADDRESS["a"], (32, 128)):
            rig.ip("a", "address", "replace", f"{address}/{length}", "dev", "lo")


def run_datagrams(rig, family, row):
    """udpong's client mistakes an echo that takes longer than 1 ms for its next message, and then
    sends it for ever. So on a busy machine it is started again."""
    kernel_has_addresses(rig)
    for _ in range(3):
        try:
            return run_row(rig, family, row, 10)
        except Failure as failure:
            last = failure
            if "did not end" not in str(failure):
                break
    raise last


def rcopy(rig, size):
    """Copies a file of this size and compares the octets."""
    sent, received = rig.folder / "rcopy.sent", rig.folder / "rcopy.received"
    sent.write_bytes(os.urandom(size))
    received.unlink(missing_ok=True)
    port = str(rig.port())
    server = rig.program(rig.sides[0], ["rcopy", "-p", port], name="rcopy-server")
    try:
        client = client_until_met(
            rig, server, ["rcopy", str(sent), f"{ADDRESS[rig.sides[0]][0]}:{received}", "-p", port],
            60)
        if not filecmp.cmp(sent, received, shallow=False):
            raise Failure("the copy differs")
    finally:
        server.end()
        sent.unlink()
        received.unlink(missing_ok=True)
    rig.check_healthy()
    return said(client)


def cases():
    """Yields (place, name, function of a rig, quick)."""
    for place in PLACES:
        for family in FAMILIES:
            for row in ROWS:
                yield (place, f"rsockets-{family}/{row[0]}",
                       lambda rig, f=family, r=row: run_row(rig, f, r),
                       row[3] and (place == "same" or row[0] == "iperf3") and
                       place != "netdev1500")
            for row in DATAGRAM_ROWS if place in DATAGRAM_PLACES else ():
                yield (place, f"rsockets-{family}/{row[0]}",
                       lambda rig, f=family, r=row: run_datagrams(rig, f, r),
                       row[3])
        yield place, "rsockets-v4/rcopy", lambda rig: rcopy(rig, 16 << 20), place == "same"
