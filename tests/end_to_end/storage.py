# SPDX-License-Identifier: BSD-3-Clause
"""fio's engine `rdma`, QEMU, which moves a running machine to another host through RDMA, and iSER: the target is
tgt, the initiators are libiscsi's tools and QEMU's.
"""

import json
import os
import re
import shutil
import socket

from rig import ADDRESS, Failure, Process, Skipped, wait_until

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


TARGET, LOGICAL_UNIT = "iqn.2026-01.test:disk", 1
INITIATOR = "iqn.2026-01.test:tool"
INITIATORS = (INITIATOR, "iqn.2008-11.org.linux-kvm")  # tgt takes no wildcard for them; the second one is QEMU's
DISK = 64 << 20
PIECE = 256 << 10  # libiscsi 1.19 moves no more in one command through iSER


class Target:
    """A tgtd with one disk, which is a file."""

    def __init__(self, rig):
        self.rig, self.side = rig, rig.sides[0]
        self.port = rig.port()
        self.disk = rig.folder / "disk"
        with open(self.disk, "wb") as disk:
            disk.truncate(DISK)
        self.env = {"TGT_IPC_SOCKET": str(rig.folder / "tgt")}
        self.process = rig.program(self.side, ["tgtd", "-f", "-C", "1", "--iser", f"port={self.port},pool_sz_mb=128",
                                               "--iscsi", f"portal=127.0.0.1:{rig.port()}"], name="tgtd", env=self.env)

    @property
    def url(self):
        return f"iser://{ADDRESS[self.side][0]}:{self.port}/{TARGET}/{LOGICAL_UNIT}"

    def await_control(self):
        def answers():
            if not self.process.alive():
                raise Failure(f"tgtd ended: {self.process.tail()}")
            return self.say("--mode", "system", "--op", "show") == 0
        wait_until("an answer of tgtd", 30, answers, 0.1)

    def say(self, *words):
        return Process(self.rig, "tgtadm", ["tgtadm", "-C", "1", "--lld", "iser", *words], self.env).wait(20)

    def must(self, *words):
        if self.say(*words) != 0:
            raise Failure(f"tgtadm {' '.join(words)}: {self.rig.processes[-1].tail()}")

    def offer(self):
        this = ("--mode", "target", "--tid", "1")
        self.must(*this, "--op", "new", "--targetname", TARGET)
        self.must("--mode", "logicalunit", "--op", "new", "--tid", "1", "--lun", str(LOGICAL_UNIT),
                  "--backing-store", str(self.disk))
        self.must(*this, "--op", "bind", "--initiator-address", "ALL")
        for name in INITIATORS:
            self.must(*this, "--op", "bind", "--initiator-name", name)

    def withdraw(self):
        """tgtd keeps a connection until the end of its TIMEWAIT, and fails if it is to delete one through iSER."""
        wait_until("the end of all sessions of the disk", 60,
                   lambda: self.say("--mode", "target", "--op", "delete", "--tid", "1") == 0, 0.5)
        self.must("--mode", "system", "--op", "delete")
        self.process.succeed(20)


def initiator(rig, *words):
    program = rig.program(rig.sides[1], words, name=words[0])
    try:
        return program.succeed(60)
    finally:
        program.end()


def use_disk(rig, target):
    """Reads what the tools say of the disk, writes it and reads it back. Returns the reads in a second."""
    if "VIRTUAL-DISK" not in initiator(rig, "iscsi-inq", "-i", INITIATOR, target.url):
        raise Failure("iscsi-inq does not name the disk")
    if f"Total size:{DISK}" not in initiator(rig, "iscsi-readcapacity16", "-i", INITIATOR, target.url):
        raise Failure("iscsi-readcapacity16 says another size")
    pieces = range(4)
    commands = [*(f"write -P {0x51 + i} {i * PIECE} {PIECE}" for i in pieces), "flush",
                *(f"read -P {0x51 + i} {i * PIECE} {PIECE}" for i in pieces),
                f"read -P 0 {len(pieces) * PIECE} {PIECE}"]
    said = initiator(rig, "qemu-io", "-f", "raw", *(w for c in commands for w in ("-c", c)), target.url)
    if "verification failed" in said:
        raise Failure(f"qemu-io reads something else: {said[-300:]!r}")
    if target.disk.read_bytes() != b"".join(bytes([0x51 + i]) * PIECE for i in pieces).ljust(DISK, b"\0"):
        raise Failure("the disk has something else")
    for words in (("-c", "2000", "-d", "16"), ("-w", "-c", "500", "-s", "65536", "-d", "8")):
        initiator(rig, "qemu-img", "bench", "-f", "raw", *words, target.url)
    said = initiator(rig, "iscsi-perf", "-i", INITIATOR, "-m", "16", "-b", "8", "-t", "2", target.url)
    return re.findall(r"iops average (\d+)", said)[-1]


def iser(rig):
    for program in ("tgtd", "iscsi-perf", "qemu-io"):
        if not shutil.which(program):
            raise Skipped(f"{program} is not installed")
    target = Target(rig)
    try:
        target.await_control()
        target.offer()
        reads = use_disk(rig, target)
        target.withdraw()
    finally:
        target.process.end()
        os.unlink(target.disk)
    rig.check_healthy()
    return f"{reads} reads of 4 KiB a second"


def cases():
    for place in PLACES:
        for name, verb, block, size in FIO:
            yield (place, name,
                   lambda rig, verb=verb, block=block, size=size: fio(rig, verb, block, size),
                   name in QUICK and place == "same")
        yield place, "qemu-moves", qemu_moves, place != "veth4200"
        yield place, "iser", iser, False
