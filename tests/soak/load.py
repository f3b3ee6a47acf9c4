# SPDX-License-Identifier: BSD-3-Clause
"""Programs of a soak: pairs of soak-load, and others. Each ends as it should, or says why not."""

import re
import signal

from programs import NOBODY
from rig import Failure, Process, wait_until

KINDS = ("rc", "rc_srq", "uc", "ud", "xrc")
SHARES = (0.4, 0.2, 0.15, 0.1, 0.15)  # of the queue pairs
LOST = 3
END_S = 600  # a program that is stuck says so itself before that
SUMS = ("operations", "messages", "octets", "missing", "overtaken", "registrations", "forks")

serial = 0


def next_serial():
    global serial
    serial += 1
    return serial


class Program:
    """One or two processes that end by themselves. `doomed`: one of them or an engine was killed.
    """

    doomed = False

    def __init__(self, place):
        self.place = place
        self.stopped = None

    def alive(self):
        return any(process.alive() for process in self.processes)

    def running(self):
        return True

    def allowed(self, process):
        return {0}

    def finish(self, limit=END_S):
        """Waits for the end; returns what they counted."""
        self.go_on()
        try:
            wrong = [(p, status) for p, status in [(p, p.wait(limit)) for p in self.processes]
                     if status not in self.allowed(p)]
            if wrong:  # that one of them lost the other is what follows
                process, status = min(wrong, key=lambda one: one[1] == LOST)
                raise Failure(f"{self.place.name}: {process.name} ended with {status}: "
                              f"{failure_of(process)}")
        finally:
            self.remove()
        return self.sums

    def remove(self):
        self.sums = dict.fromkeys(SUMS, 0)
        for process in self.processes:
            for name, value in re.findall(r"(\w+)=(\d+)", process.output().rpartition(": ")[2]):
                self.sums[name] = self.sums.get(name, 0) + int(value)
            process.end()
            process.log.unlink()
            self.place.rig.processes.remove(process)

    def stop(self):
        self.stopped = self.processes[serial % len(self.processes)]
        self.stopped.signal(signal.SIGSTOP)

    def go_on(self):
        if self.stopped is not None:
            self.stopped.signal(signal.SIGCONT)
        self.stopped = None


def failure_of(process):
    found = re.search(r"^FAILED: (.*)", process.output(), re.MULTILINE)
    return found[1] if found else process.tail()


def lanes(total):
    return [f"{kind}={max(1, round(total * share))}" for kind, share in zip(KINDS, SHARES)]


class Pair(Program):
    """Two soak-load, on both sides of a place."""

    def __init__(self, place, total, seconds, rate, calm, seed, nobody=False, gid=1):
        super().__init__(place)
        n = next_serial()
        self.killed = set()
        self.qps = 2 * total
        options = [f"seconds={seconds:.1f}", f"rate={rate}", f"seed={seed}", f"gid={gid}",
                   f"orderly={int(place.orderly)}", f"fork_ms={calm * 2000 + 20 * total}",
                   f"register_ms={calm * 50}", *lanes(total)]
        self.processes = [
            place.rig.program(side, [str(place.program), role, str(place.meet / f"{n}.sock"),
                                     f"name={place.name}-{n}-{role}", *options],
                              wrapper=NOBODY if nobody else (), name=f"{n}-{role}")
            for role, side in zip(("server", "client"), place.sides)]

    def running(self):
        return all(re.search("^running", process.output(), re.MULTILINE)
                   for process in self.processes if process.alive())

    def kill(self, which):
        self.doomed = True
        self.killed.add(self.processes[which])
        self.processes[which].signal(signal.SIGKILL)

    def allowed(self, process):
        if process in self.killed:
            return {0, LOST, -signal.SIGKILL, 128 + signal.SIGKILL}
        return {0, LOST} if self.doomed else {0}


class EveryVerb(Program):
    """tests/unit/verbs/library/every_verb.c: all verbs in random order, on shared objects."""

    def __init__(self, place, side):
        super().__init__(place)
        rig = place.rig
        words = [*rig.inside(side), str(rig.build / "tests/unit/verbs/every-verb"), "4", "300"]
        self.processes = [Process(rig, f"{next_serial()}-every-verb", words,
                                  {"UROCE_SOCKET": rig.socket(side)})]


class Connections(Program):
    """tests/perf/connections.c: connections of rdma_cm, made and closed."""

    def __init__(self, place, address):
        super().__init__(place)
        rig = place.rig
        program = str(rig.build / "tests/perf/connections")
        port = str(10000 + next_serial() % 40000)
        self.processes = []
        for side, words in zip(place.sides, (["-l"], ["-c"])):
            self.processes.append(rig.program(
                side, [program, *words, address, "-p", port, "-n", "100"],
                name=f"{next_serial()}-connections{words[0]}"))
            if words == ["-l"]:
                wait_until("a listener of rdma_cm", 60, self.listens, 0.05)

    def listens(self):
        if not self.alive():
            raise Failure(f"{self.place.name}: nobody listens: {self.processes[0].tail()}")
        return self.place.rig.connection_ids(self.place.sides[0])
