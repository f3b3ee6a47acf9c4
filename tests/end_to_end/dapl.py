# SPDX-License-Identifier: BSD-3-Clause
"""DAPL (uDAT) with its providers cma, for rdma_cm, and scm, which connects through TCP: dtest, dtestx, dtestsrq,
dtestcm and dapltest.

Both sides have providers of the same names, because a client takes the name from its server. The provider ucm is not
among these: its programs need LIDs, which RoCE does not have.
"""

import re

from rig import ADDRESS, Failure, wait_until
from rsockets import kernel_has_addresses

PLACES = ("same", "netdev1500")  # most programs look for their server through TCP of the kernel, at the same address
LIMIT = 60

OPERATIONS = ("client RW 4096 1 server RW 2048 4 client SR 1024 4 server SR 4096 2 "
              "client SR 1024 3 -f server SR 2048 1 -f")
# (name, words of both, words of the server alone, of the client alone, the last words of both, quick)
ROWS = [
    ("dtest", "dtest -P cma -b 65536", "-s", "-h {server}", "DAPL Test Complete. PASSED", True),
    ("dtest-poll", "dtest -P cma -b 4096 -p", "-s", "-h {server}", "DAPL Test Complete. PASSED", False),
    ("dtest-cno", "dtest -P cma -b 65536 -c", "-s", "-h {server}", "DAPL Test Complete. PASSED", False),
    ("dtestx", "dtestx -P cma", "-s", "-h {server}", "immed/atomic test PASSED", False),
    ("dtestsrq", "dtestsrq -P cma", "", "-h {server}", "DAPL RC SRQ Test Complete", True),
    ("dtest-scm", "dtest -P scm -b 65536", "-s", "-h {server}", "DAPL Test Complete. PASSED", False),
    ("dtestx-scm", "dtestx -P scm", "-s", "-h {server}", "immed/atomic test PASSED", False),
    ("dtestcm", "dtestcm -P cma -c 100", "-s", "-h {server}", "DAPL Connection Test Complete", False),
]
TCP_PORT = 15828  # where a server of these tells its address; it cannot be changed
WITHOUT_TCP = {"dtestsrq"}
# Their servers listen on rdma_cm after they have told their address. 0x4003 is DAT's event of a rejection.
# The TCP port of the server before may still be in TIME_WAIT.
REFUSED = re.compile(r"REJECTED|UNREACHABLE|refused|0x4003|in use|did not end", re.I)

# (name, letter of the test and its words)
DAPLTEST = [
    ("transactions", f"T -V -t 2 -w 4 -i 100 {OPERATIONS}"),
    ("writes", "P -i 1000 RW 4096 2"),
    ("reads", "P -m p -i 1000 RR 4096 2"),
]


def environment(rig, side):
    """DAPL's list of providers has the address and the device of this side's engine."""
    path = rig.folder / f"dat-{side}.conf"
    rest = "u2.0 nonthreadsafe default {} dapl.2.0 \"{}\" \"\"\n"
    path.write_text("cma " + rest.format("libdaplofa.so.2", f"{ADDRESS[side][0]} 0") +
                    "scm " + rest.format("libdaploscm.so.2", "uroce0 1"))
    return {"DAT_OVERRIDE": str(path), "DAPL_SCM_NETDEV": "lo" if rig.sides[0] == rig.sides[1] else "wire"}


def begin(rig, side, words, name):
    return rig.program(side, words, name=name, env=environment(rig, side))


def await_listener(rig, server):
    def listens():
        if not server.alive():
            raise Failure(f"{server.name} ended with {server.popen.returncode}: {server.tail()}")
        return any(id["state"] == "LISTEN" and id["pid"] == server.pid for id in rig.connection_ids(rig.sides[0]))
    wait_until(f"{server.name} listening on rdma_cm", 30, listens)


def finish(program, last):
    """Some of the programs end with status 0 when they have failed, too."""
    text = program.succeed(LIMIT)
    if last not in text:
        raise Failure(f"{program.name} printed no '{last}': {program.tail()}")
    return text


def run_client(rig, words, name, last):
    client = begin(rig, rig.sides[1], words, name)
    try:
        return finish(client, last)
    finally:
        client.end()


def run_once(rig, row):
    name, both, servers, clients, last, _ = row
    server = begin(rig, rig.sides[0], [*both.split(), *servers.split()], f"{name}-server")
    try:
        if name in WITHOUT_TCP:
            await_listener(rig, server)
        else:
            server.await_listening(TCP_PORT)
        words = [*both.split(), *clients.format(server=ADDRESS[rig.sides[0]][0]).split()]
        run_client(rig, words, f"{name}-client", last)
        finish(server, last)
    finally:
        server.end()
    rig.check_healthy()
    return last


def run_row(rig, row):
    """Both are started again if the client was faster than the server, at most four times."""
    kernel_has_addresses(rig)
    for again in (True, True, True, True, False):
        try:
            return run_once(rig, row)
        except Failure as failure:
            if not again or not REFUSED.search(str(failure)):
                raise
    return None


def dapltest(rig):
    """One server serves each client, and ends when the last one asks for it."""
    server = begin(rig, rig.sides[0], "dapltest -T S -D cma".split(), "dapltest-server")
    try:
        await_listener(rig, server)
        address = ADDRESS[rig.sides[0]][0]
        for name, line in [*DAPLTEST, ("quit", "Q")]:
            letter, *words = line.split()
            text = run_client(rig, ["dapltest", "-T", letter, "-s", address, "-D", "cma", *words],
                              f"dapltest-{name}", "End of Work")
            if re.search(r"error|mismatch|fail", text, re.I):
                raise Failure(f"dapltest, {name}: {text[-300:]!r}")
        server.succeed(20)
    finally:
        server.end()
    rig.check_healthy()
    return ", ".join(name for name, _ in DAPLTEST)


def limits(rig):
    text = run_client(rig, "dapltest -T L -D cma -w 2 -m 100".split(), "dapltest-limits", "limit_size_lmr")
    for what in ("EP", "PSP", "LMR"):
        if f"{what}s created: 100" not in text:
            raise Failure(f"dapltest made fewer than 100 {what}s: {text[-300:]!r}")
    return "100 of each kind"


def cases():
    """Yields (place, name, function of a rig, quick)."""
    for place in PLACES:
        for row in ROWS:
            yield (place, f"dapl/{row[0]}", lambda rig, row=row: run_row(rig, row),
                   row[-1] and place == "same")
        yield place, "dapl/dapltest", dapltest, False
    yield "same", "dapl/limits", limits, False
