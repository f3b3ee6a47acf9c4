# SPDX-License-Identifier: BSD-3-Clause
"""Programs of ours on libraries that Debian has no programs for: librpma, and gloo's transport ibverbs."""

import pathlib
import subprocess

from rig import ADDRESS, Failure, wait_until
from rsockets import kernel_has_addresses

PLACES = ("same", "veth4200", "netdev1500")
HERE = pathlib.Path(__file__).resolve().parent
PORT = "7204"
RANKS = (2, 4)


def build(rig, source, compiler, libraries):
    """A program that all users may run."""
    program = rig.tools / pathlib.Path(source).stem
    done = subprocess.run([*compiler, str(HERE / source), "-o", str(program), *libraries], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{source} is not built: {done.stderr[-500:]}")
    program.chmod(0o755)
    return str(program)


def succeed_with(program, last):
    text = program.succeed(60)
    if last not in text:
        raise Failure(f"{program.name} printed no '{last}': {program.tail()}")


def librpma(rig):
    kernel_has_addresses(rig)
    program = build(rig, "rpma.c", ["gcc", "-O1", "-Wall", "-Wextra", "-Werror"], ["-lrpma", "-libverbs"])
    address = ADDRESS[rig.sides[0]][0]
    server = rig.program(rig.sides[0], [program, "server", address, PORT], name="rpma-server")
    client = None
    try:
        wait_until("the server of librpma", 30, lambda: "listening" in server.output() or not server.alive())
        if not server.alive():
            raise Failure(f"the server of librpma ended: {server.tail()}")
        client = rig.program(rig.sides[1], [program, "client", address, PORT], name="rpma-client")
        succeed_with(client, "rounds agree")
        succeed_with(server, "rounds agree")
    finally:
        for process in filter(None, (server, client)):
            process.end()
    rig.check_healthy()
    return "write, flush, atomic write, read, send"


def gloo(rig):
    program = build(rig, "gloo_rank.cc", ["g++", "-O1", "-std=c++17"], ["-lgloo", "-lpthread"])
    for ranks in RANKS:
        meet = rig.folder / f"gloo-{ranks}"
        meet.mkdir()
        processes = [rig.program(rig.sides[rank % 2], [program, str(rank), str(ranks), str(meet), "1"],
                                 name=f"gloo-{rank}") for rank in range(ranks)]
        try:
            for rank, process in enumerate(processes):
                succeed_with(process, f"rank {rank} agrees")
        finally:
            for process in processes:
                process.end()
    rig.check_healthy()
    return f"{' and '.join(map(str, RANKS))} ranks"


def cases():
    """Yields (place, name, function of a rig, quick)."""
    for place in PLACES:
        yield place, "libraries/rpma", librpma, False
        yield place, "libraries/gloo", gloo, False
