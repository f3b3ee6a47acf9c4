# SPDX-License-Identifier: BSD-3-Clause
"""Engines and what connects them: a Place is a rig of tests/end_to_end with its own engines."""

import shutil
import signal
import time

import rig as rigs
from rig import ADDRESS, Rig, wait_until

# What engine b of a bad wire does to frames that it sends and receives.
BAD = "drop=0.005,duplicate=0.002,reorder=0.01,corrupt=0.001"
PROGRAMS = ("tests/soak/soak-load", "tests/unit/verbs/every-verb", "tests/perf/connections")


class Place:
    """Some engines. Those of `mortal` sides are killed now and then and started again."""

    orderly = True  # packets come once, and in their order
    has_link = False
    mortal = ()

    def __init__(self, build, seed):
        self.rig = Rig(build)
        self.seed = seed
        self.born = {}  # when the engine of a side was started
        try:
            self.meet = self.rig.folder / "meet"  # sockets of programs of any user
            self.meet.mkdir()
            self.meet.chmod(0o777)
            self.program = self.rig.tools / "soak-load"
            shutil.copy2(build / PROGRAMS[0], self.program)
            self.program.chmod(0o755)
            self.make()
            for side in dict.fromkeys(self.sides):
                self.start(side)
            self.ready()
        except BaseException:
            self.rig.close()
            raise

    def ready(self):
        for side in dict.fromkeys(self.sides):
            wait_until(f"the port of {self.name}, side {side}", 60,
                       lambda: self.rig.statistics(side)["active"], 0.1)

    def start(self, side):
        self.rig.engine(side, *self.words(side), limit=120)
        self.born[side] = time.monotonic()

    def kill(self, side):
        engine = self.rig.engines[side]
        engine.signal(signal.SIGKILL)
        engine.wait(60)
        self.rig.processes.remove(engine)
        self.start(side)
        self.ready()

    def addresses(self, side):
        v4, v6 = ADDRESS[side]
        return f"{v4}/24,{v6}/64"

    def close(self):
        self.rig.close()


class Same(Place):
    """One engine without a port. Its lcores share SRQs and completion queues."""

    name = "same"
    sides = ("a", "a")
    lcores = "0,1"

    def make(self):
        self.rig.namespace("a")

    def words(self, side):
        return ["-l", self.lcores], ["--ip", self.addresses(side)]

    def ready(self):
        pass


class SameMortal(Same):
    """One that is killed."""

    name = "mortal"
    mortal = ("a",)
    lcores = "0"


class Veth(Place):
    """A cable of Linux that goes down and up, and loses, repeats, changes and reorders packets."""

    name = "veth"
    sides = ("a", "b")
    orderly = False
    has_link = True
    mortal = ("a",)

    def make(self):
        for side in "ab":
            self.rig.namespace(side)
        self.rig.veth("wire", 4200)

    def words(self, side):
        eal, port = [rigs.af_packet("wire", 4200)], "net_af_packet0"
        if side == "b":
            eal.append(f"--vdev=net_impair0,port=net_af_packet0,{BAD},seed={self.seed}")
            port = "net_impair0"
        return eal, ["--port", port, "--ip", self.addresses(side), "--mtu", "4200"]

    def link_down(self):
        self.rig.ip("a", "link", "set", "wire", "down")

    def link_up(self):
        self.rig.ip("a", "link", "set", "wire", "up")


class Memif(Place):
    """Shared memory between two engines."""

    name = "memif"
    sides = ("a", "b")
    mortal = ("b",)

    def make(self):
        for side in "ab":
            self.rig.namespace(side)

    def words(self, side):
        role = {"a": "server", "b": "client"}[side]
        eal = (f"--vdev=net_memif0,role={role},socket={self.rig.folder}/memif.sock,"
               f"socket-abstract=no,bsize=8192,rsize=11")
        return [eal], ["--port", "net_memif0", "--ip", self.addresses(side), "--mtu", "4200"]

    def ready(self):
        if set(self.born) == set(self.sides):
            super().ready()


PLACES = (Same, SameMortal, Veth, Memif)
