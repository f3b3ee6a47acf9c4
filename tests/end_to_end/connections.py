# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect through rdma_cm: unmodified, on one engine and across two, IPv4 and IPv6.

A client is started when `uroce stat --cm` shows that its server listens. perftest's servers listen
twice, and nothing shows the second time, so a client that was refused is started again with its
server.
"""

import re
import time

from programs import figures
from rig import ADDRESS, Failure, wait_until

PLACES = ("same", "veth4200", "netdev1500")
# Each run waits some 7 s for the end of TIMEWAIT. The place changes nothing in it.
MANY_QUICK = ("veth4200",)
FAMILIES = {"v4": 0, "v6": 1}
ANY = {"v4": "0.0.0.0", "v6": "::"}
FORMAT = {"v4": "ip", "v6": "ipv6"}
GROUP = {"v4": "239.7.8.9", "v6": "ff15::7:8:9"}

# (name, server's words, client's words); with families: only those.
ROWS = [
    ("rping", "rping -s -a {any} -p {port} -C 20 -V -S 4000",
     "rping -c -a {server} -p {port} -C 20 -V -S 4000"),
    ("rping-own-qp", "rping -s -q -a {any} -p {port} -C 20 -V",
     "rping -c -q -a {server} -p {port} -C 20 -V"),
    ("ucmatose", "ucmatose -b {any} -f {format} -p {port} -c 10 -C 20 -S 1000",
     "ucmatose -s {server} -f {format} -p {port} -c 10 -C 20 -S 1000"),
    ("ucmatose-migrate", "ucmatose -b {any} -f {format} -p {port} -c 5 -C 5 -m",
     "ucmatose -s {server} -f {format} -p {port} -c 5 -C 5 -m"),
    ("udaddy", "udaddy -b {any} -f {format} -c 5 -C 10 -S 512",
     "udaddy -s {server} -f {format} -c 5 -C 10 -S 512"),
    ("rdma_server", "rdma_server -s {server} -p {port}", "rdma_client -s {server} -p {port}"),
    ("rdma_xserver", "rdma_xserver -p {port}", "rdma_xclient -s {server} -p {port}"),
    ("rdma_xserver-xrc", "rdma_xserver -p {port} -c x", "rdma_xclient -s {server} -p {port} -c x"),
    ("cmtime", "cmtime -b {server} -p {port} -c 100", "cmtime -s {server} -p {port} -c 100"),
    ("ib_write_bw", "ib_write_bw -d uroce0 -R -F -n 200 -p {port}",
     "ib_write_bw -d uroce0 -R -F -n 200 -p {port} {server}"),
    ("ib_send_lat", "ib_send_lat -d uroce0 -R -F -p {port} -n 200",
     "ib_send_lat -d uroce0 -R -F -p {port} -n 200 {server}"),
    ("ib_send_bw-ud", "ib_send_bw -d uroce0 -R -F -c UD -p {port} -s 1024 -n 200",
     "ib_send_bw -d uroce0 -R -F -c UD -p {port} -s 1024 -n 200 {server}"),
]
ONLY = {"rdma_xserver": ("v4",), "rdma_xserver-xrc": ("v4",), "ib_write_bw": ("v4",),
        "ib_send_lat": ("v4",), "ib_send_bw-ud": ("v4",)}
UDADDY_PORT = 7174  # it cannot be changed
STAYS = {"cmtime"}  # servers that do not end by themselves
REFUSED = re.compile(r"REJECTED|refused|UNREACHABLE|unexpected CM event|Unexpected CM event", re.I)


class Refused(Failure):
    """perftest's server, which connects twice and may not listen yet for the second time, refused.
    """


def run_client(rig, server, words, limit):
    """Runs the client, which must end with status 0."""
    client = rig.program(rig.sides[1], words, name=f"{words[0]}-client")
    try:
        status = client.wait(limit)
    finally:
        client.end()
    if status == 0:
        return client
    kind = Refused if words[0].startswith("ib_") and REFUSED.search(client.output()) else Failure
    raise kind(f"{client.name} ended with {status}: {client.tail()} (server: {server.tail()})")


def await_listener(rig, server, words, values):
    port = UDADDY_PORT if words[0] == "udaddy" else values["port"]

    def listens():
        if not server.alive():
            raise Failure(f"{server.name} ended with {server.popen.returncode} before it "
                          f"listened: {server.tail()}")
        return any(id["state"] == "LISTEN" and id["pid"] == server.pid and
                   id["source"]["port"] == port for id in rig.connection_ids(rig.sides[0]))
    wait_until(f"{server.name} listening on port {port} of rdma_cm", 30, listens)


def said(words, client):
    if words[0].startswith("ib_"):
        return figures(words[0], client.output())
    if words[0] == "cmtime":
        took = re.search(r"^connect\s+:.*\s([\d.]+)$", client.output(), re.MULTILINE)
        return f"{took[1]} us a connect" if took else "done"
    lines = [line.strip() for line in client.output().splitlines() if line.strip()]
    return lines[-1][:60] if lines else "done"


def run_connected(rig, family, row, limit=60):
    """Starts server and client again if perftest's server refused the client's second connection.
    """
    end = time.monotonic() + limit
    while True:
        try:
            return run_once(rig, family, row, limit)
        except Refused:
            if time.monotonic() > end:
                raise


def run_once(rig, family, row, limit):
    name, server_line, client_line = row
    values = {"server": ADDRESS[rig.sides[0]][FAMILIES[family]], "any": ANY[family],
              "port": rig.port(), "format": FORMAT[family]}
    server_words = server_line.format(**values).split()
    client_words = client_line.format(**values).split()
    server = rig.program(rig.sides[0], server_words, name=f"{server_words[0]}-server")
    try:
        await_listener(rig, server, server_words, values)
        client = run_client(rig, server, client_words, limit)
        if name not in STAYS:
            server.succeed(20)
    finally:
        server.end()
    rig.check_healthy()
    return said(client_words, client)


def mckey(rig, side, name, family, *options):
    words = ["stdbuf", "-oL", "mckey", "-m", GROUP[family], "-C", "10", "-S", "512", *options]
    return rig.program(side, [*words, "-b", ADDRESS[side][FAMILIES[family]]], name=name)


def multicast(rig):
    """mckey: one program receives what another one sends to a group. mckey waits for 3 s before it
    sends, so both families run at once."""
    programs = []
    try:
        hearers = [mckey(rig, rig.sides[0], f"mckey-hearer-{f}", f) for f in FAMILIES]
        programs += hearers
        for hearer in hearers:
            hearer.expect("joined dgid", 20)
        senders = [mckey(rig, rig.sides[1], f"mckey-sender-{f}", f, "-s") for f in FAMILIES]
        programs += senders
        for program in [*senders, *hearers]:
            program.succeed(30)
    finally:
        for program in programs:
            program.end()
    rig.check_healthy()
    return "heard, v4 and v6"


def await_empty(rig):
    """Waits until the engines hold no objects and no connections, not even in TIMEWAIT."""
    for side in set(rig.sides):
        def holds_nothing():
            now = rig.statistics(side)
            return now["objects"] == 0 and now["connections"] == 0
        wait_until(f"the end of all connections of side {side}", 20, holds_nothing, 0.1)


def many(rig, count=500, limit=120):
    """Opens and closes many connections; afterwards the engines hold none of them."""
    await_empty(rig)
    port = str(rig.port())
    address = ADDRESS[rig.sides[0]][0]
    words = [str(rig.build / "tests/perf/connections"), "-p", port, "-n", str(count)]
    server = rig.program(rig.sides[0], [*words, "-l", address], name="connections-passive")
    try:
        await_listener(rig, server, words, {"port": int(port)})
        client = rig.program(rig.sides[1], [*words, "-c", address], name="connections-active")
        try:
            said_last = client.succeed(limit).strip()
            server.succeed(20)
        finally:
            client.end()
    finally:
        server.end()
    await_empty(rig)
    rig.check_healthy()
    return said_last


def another_mac(rig):
    """An id gets an event when the interface that it is bound to changes its MAC address."""
    address = rig.ip("a", "-br", "link", "show", "dev", "wire").split()[2]
    port = rig.port()
    words = ["rping", "-s", "-a", ADDRESS["a"][0], "-p", str(port)]
    server = rig.program("a", ["stdbuf", "-oL", "-eL", *words], name="rping-server")
    try:
        await_listener(rig, server, words, {"port": port})
        rig.ip("a", "link", "set", "wire", "address", "02:00:00:00:07:08")
        server.expect("RDMA_CM_EVENT_ADDR_CHANGE", 20)
        rig.ip("a", "link", "set", "wire", "address", address)
        server.expect("(?s)(RDMA_CM_EVENT_ADDR_CHANGE.*){2}", 20)
    finally:
        server.end()
    rig.check_healthy()
    return "told"


def cases():
    """Yields (place, name, function of a rig, quick)."""
    for place in PLACES:
        for family in FAMILIES:
            for row in ROWS:
                if family in ONLY.get(row[0], FAMILIES):
                    yield (place, f"cm-{family}/{row[0]}",
                           lambda rig, f=family, r=row: run_connected(rig, f, r), True)
        yield place, "cm/mckey", multicast, True
        yield place, "cm-v4/connections", many, place in MANY_QUICK
        yield place, "cm-v4/connections-10000", lambda rig: many(rig, 10000), False
        if place.startswith("netdev"):
            yield place, "cm-v4/another-mac", another_mac, True
