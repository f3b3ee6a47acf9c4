# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI: ranks on one engine, or on two, whose second half is started by a script in place of ssh."""

import pathlib

from rig import ADDRESS, CONTROL, Failure, Process

PLACES = ("same", "veth4200", "netdev1500")
RANKS = 4
PROGRAM = pathlib.Path(__file__).resolve().parent / "mpi_rank.py"

# (name, words of mpirun). osc pt2pt, because at its end osc ucx waits for peers that may have left.
UCX = "--mca pml ucx --mca osc pt2pt -x UCX_TLS={},self -x UCX_NET_DEVICES=uroce0:1"
LAYERS = [
    ("ucx-rc", UCX.format("rc_v")),
    ("ucx-ud", UCX.format("ud_v")),
    ("ofi", "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm --mca osc pt2pt"),
]


def write_agent(rig):
    """`agent HOST COMMAND` runs the command in the namespace of side b."""
    agent = rig.folder / "agent"
    agent.write_text(f'#!/bin/sh\nshift\nUROCE_SOCKET={rig.socket("b")} '
                     f'exec {" ".join(rig.inside("b"))} sh -c "$*"\n')
    agent.chmod(0o755)
    return str(agent)


def hosts_of(rig):
    if rig.sides == ("a", "a"):
        return ["--host", f"localhost:{RANKS}"]
    here, there = (rig.control, CONTROL["b"] if rig.control == CONTROL["a"] else ADDRESS["b"][0])
    return ["--mca", "plm_rsh_agent", write_agent(rig), "--host", f"{here}:{RANKS // 2},{there}:{RANKS // 2}"]


def mpi(rig, layer):
    words = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
             "--mca", "mpi_yield_when_idle", "1", *hosts_of(rig), "-np", str(RANKS), *layer.split(),
             str(rig.tools / "apps/uroce"), "run", "--quiet", "--", "/usr/bin/python3", "-B", str(PROGRAM)]
    job = Process(rig, "mpirun", [*rig.inside("a"), *words],
                  {"UROCE_SOCKET": rig.socket("a"), "TMPDIR": str(rig.folder)})
    try:
        text = job.succeed(120)
    finally:
        job.end()
    if f"{RANKS} ranks agree" not in text:
        raise Failure(f"the ranks say: {job.tail()}")
    rig.check_healthy()
    return f"{RANKS} ranks"


def cases():
    for place in PLACES:
        for name, layer in LAYERS:
            yield place, f"mpi/{name}", lambda rig, layer=layer: mpi(rig, layer), False
