# SPDX-License-Identifier: BSD-3-Clause
"""fio's engine `rdma`, and QEMU, which moves a running machine to another host through RDMA."""

import json
import os
import socket

from rig import ADDRESS, Failure, wait_until

PLACES = ("same", "veth4200", "netdev1500")

# (name, fio's verb, octets of a block, of all). Not `send`: fio asks for an RNR retry count of 0, so
# it fails if the server is not given a processor in time, on any device.
FIO = [
    ("fio-write", "write", "64k", "128m"),
    ("fio-write-4k", "write", "4k", "16m"),
    ("fio-read", "read", "64k", "128m"),
]
QUICK = {"fio-write", "fio-read"}

RAM = 64 << 20
PATTERN_AT, PATTERN = 16 << 20, bytes(range(256)) * (32 << 12)  # 32 MiB in the machine's memory


def await_port(rig, server, port):
    """A process that fio has forked listens."""
    def listens():
        if not server.alive():
            raise Failure(f"{server.name} ended: {server.tail()}")
        return any(id["state"] == "LISTEN" and id["source"]["port"] == port
                   for id in rig.connection_ids(rig.sides[0]))
    wait_until(f"{server.name} listening on port {port} of rdma_cm", 30, listens)


def fio(rig, verb, block, size):
    port = rig.port()
    common = ["fio", "--ioengine=rdma", f"--port={port}", f"--bs={block}",
              f"--size={size}", "--iodepth=16", "--output-format=json"]
    server = rig.program(rig.sides[0], [*common, "--name=server", "--rw=read"], name="fio-server")
    try:
        await_port(rig, server, port)
        client = rig.program(rig.sides[1], [*common, "--name=client", f"--verb={verb}", "--rw=write",
                                            f"--hostname={ADDRESS[rig.sides[0]][0]}"],
                             name="fio-client")
        try:
            text = client.succeed(60)
            server.succeed(20)
        finally:
            client.end()
    finally:
        server.end()
    rig.check_healthy()
    job = json.loads(text[text.index("{"):])["jobs"][0]
    if job["error"] != 0 or job["write"]["io_kbytes"] != int(size[:-1]) << 10:
        raise Failure(f"fio moved {job['write']['io_kbytes']} KiB, error {job['error']}")
    return f"{job['write']['bw'] / 1024:.0f} MiB/s"


class Machine:
    """A QEMU that does not run yet, and its control socket (QMP)."""

    def __init__(self, rig, side, name, words):
        path = rig.folder / f"{name}.qmp"
        path.unlink(missing_ok=True)
        self.process = rig.program(
            side, ["qemu-system-x86_64", "-display", "none", "-nodefaults", "-S", "-m",
                   str(RAM >> 20), "-qmp", f"unix:{path},server=on,wait=off", *words], name=name)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        try:
            wait_until(f"the control socket of {name}", 30, lambda: self.connect(path))
        except Failure:
            self.end()
            raise
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self.say("qmp_capabilities")

    def connect(self, path):
        if not self.process.alive():
            raise Failure(f"QEMU ended: {self.process.tail()}")
        return self.socket.connect_ex(str(path)) == 0

    def say(self, command, **arguments):
        print(json.dumps({"execute": command, "arguments": arguments}), file=self.file, flush=True)
        while True:
            answer = json.loads(self.file.readline())
            if "error" in answer:
                raise Failure(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def memory(self, path):
        self.say("pmemsave", val=0, size=RAM, filename=str(path))
        return path.read_bytes()

    def end(self):
        self.process.end()
        self.socket.close()


def moved(machine):
    state = machine.say("query-migrate")
    if state.get("status") == "failed":
        raise Failure(f"the machine was not moved: {machine.process.tail()}")
    return state if state.get("status") == "completed" else None


def move(rig, source, target, where, pins):
    for machine in (source, target):
        machine.say("migrate-set-capabilities",
                    capabilities=[{"capability": "rdma-pin-all", "state": pins}])
    source.say("migrate", uri=where)
    state = wait_until("the machine's move", 60, lambda: moved(source), 0.05)
    before, after = (machine.memory(rig.folder / f"{name}.memory")
                     for machine, name in ((source, "source"), (target, "target")))
    if before[PATTERN_AT:PATTERN_AT + len(PATTERN)] != PATTERN:
        raise Failure("the machine's memory does not have the pattern")
    if before != after:
        raise Failure("the memory is another one after the move")
    return state["ram"]["transferred"]


def qemu_moves(rig):
    """Pages one by one, which are registered during the migration, and all registered at once."""
    pattern = rig.folder / "pattern"
    pattern.write_bytes(PATTERN)
    loads = ["-device", f"loader,file={pattern},addr={PATTERN_AT:#x},force-raw=on"]
    octets = []
    for pins in (False, True):
        where = f"rdma:{ADDRESS[rig.sides[0]][0]}:{rig.port()}"
        target = Machine(rig, rig.sides[0], "target", ["-incoming", where])
        try:
            source = Machine(rig, rig.sides[1], "source", loads)
            try:
                octets.append(move(rig, source, target, where, pins))
            finally:
                source.end()
        finally:
            target.end()
    for name in ("pattern", "source.memory", "target.memory"):
        os.unlink(rig.folder / name)
    rig.check_healthy()
    return f"{octets[0] >> 20} and {octets[1] >> 20} MiB"


def cases():
    for place in PLACES:
        for name, verb, block, size in FIO:
            yield (place, name,
                   lambda rig, verb=verb, block=block, size=size: fio(rig, verb, block, size),
                   name in QUICK and place == "same")
        yield place, "qemu-moves", qemu_moves, place != "veth4200"
