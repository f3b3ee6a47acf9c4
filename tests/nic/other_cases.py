# SPDX-License-Identifier: BSD-3-Clause
"""Sleeping on the card's interrupts; the kernel's interface beside RoCE; the project's own measurement."""

import hashlib
import json
import time

from inside import connect
from machine import SERVER_PORT
from nic_guest import SOCKET
from rig import Failure, Process, wait_until
from wire import CONTROL

TCP_LINES = 200000


def looks(wire, seconds=0):
    """How often the engine looks at its port in this many seconds, or between two questions."""
    before = wire.guest.statistics()["polls"]
    time.sleep(seconds)
    return wire.guest.statistics()["polls"] - before


def sleeping(wire):
    """An idle engine sleeps until a frame arrives, not in naps: it hardly looks at its port."""
    # earlier packets have been acknowledged, and it no longer spins
    wait_until("the first sleep of an idle engine", 30, lambda: looks(wire) < 300, 0.1)
    looked = looks(wire, 3)
    remark = wire.measured("ibv_rc_pingpong -n 60")
    if looked > 1000:
        raise Failure(f"an idle engine looked {looked} times in 3 s")
    return f"{looked} looks in 3 s, {remark}"


def tcp(wire, address):
    """Many segments of TCP over the card; returns how long they took."""
    began = time.monotonic()
    namespace = f"{wire.rig.prefix}a"
    with connect(namespace, address, SERVER_PORT, 20) as server:
        server.settimeout(90)
        request = {"run": ["seq", "1", str(TCP_LINES)], "limit": 60}
        server.sendall(json.dumps(request).encode() + b"\n")
        got = json.loads(server.makefile().readline())["output"]
    wanted = "".join(f"{i}\n" for i in range(1, TCP_LINES + 1))
    if hashlib.sha256(got.encode()).digest() != hashlib.sha256(wanted.encode()).digest():
        raise Failure(f"TCP brought {len(got)} octets, and not those that were sent")
    return time.monotonic() - began


def kernel_interface(wire):
    """TCP through the kernel's interface, alone and together with a pair of programs."""
    tcp(wire, wire.theirs[0])
    port = wire.rig.port()
    words = ["ib_write_bw", "-d", "uroce0", "-x", "1", "-F", "-u", "20", "-p", str(port), "-s",
             "65536", "-n", "200"]
    number = wire.guest.verbs(words)
    wire.guest.listens(port, number)
    client = wire.rig.program("a", [*words, "10.8.0.2"], name="ib_write_bw-client")
    try:
        took = tcp(wire, wire.theirs[0])
        client.succeed(90)
        wire.succeed(number, "ib_write_bw", 30)
    finally:
        client.end()
    return f"TCP took {took:.1f} s"


def perf(wire):
    """`uroce perf --server` on the card and `uroce perf --peer` here: every operation over the wire."""
    uroce, port = str(wire.rig.build / "apps/uroce"), wire.rig.port()
    number = wire.guest.start([uroce, "perf", "--server", "--once", "--tcp-port", str(port), "--socket", SOCKET])
    wire.guest.listens(port, number)
    client = Process(wire.rig, "uroce-perf", [
        *wire.rig.inside("a"), uroce, "perf", "--peer", CONTROL[1], "--tcp-port", str(port), "--socket",
        wire.rig.socket("a"), "--size", "4096", "--depth", "16", "--seconds", "0.5", "--no-limits", "--json"])
    rates = json.loads(client.succeed(120))["rates"]
    wire.succeed(number, "uroce perf --server", 30)
    still = [rate["operation"] for rate in rates if rate["messages"] == 0]
    if still or len(rates) != 4:
        raise Failure(f"{len(rates)} of 4 operations were measured, and nothing moved of {still}")
    return ", ".join(f"{rate['operation']} {rate['messages_per_s']:.0f}/s" for rate in rates)
