# SPDX-License-Identifier: BSD-3-Clause
"""What engines hold: sampled all the time, and judged when nobody uses them."""

import csv
import os
import pathlib
import re
import statistics
import subprocess
import threading
import time

from rig import Failure, wait_until

# name, what it is, how much more the last third of the rests may have than the second one; and how
# much more the last rest of a short run than its first one, when not all is in use yet.
METRICS = (
    ("memory", "MiB of the engine's own memory", 4, 16),
    ("descriptors", "descriptors", 4, 4),
    ("objects", "objects", 0, 0),
    ("mappings", "mappings", 64, 64),
    ("threads", "threads", 2, 2),
)
LONG = 9  # rests of a run that can be divided into thirds
REST_S = 120  # for the end of all objects
SETTLE_S = 120  # for memory that is given back after the objects


def held(place, side, pid):
    """One sample of an engine, or None if it does not answer."""
    proc = pathlib.Path(f"/proc/{pid}")
    try:
        status = (proc / "status").read_text()
        found = {"descriptors": len(os.listdir(proc / "fd")),
                 "mappings": (proc / "maps").read_text().count("\n")}
        s = place.rig.statistics(side)
    except (OSError, Failure, ValueError, subprocess.TimeoutExpired):
        return None
    for name, key, scale in (("memory", "RssAnon", 1024), ("threads", "Threads", 1)):
        match = re.search(rf"^{key}:\s+(\d+)", status, re.MULTILINE)
        if match is None:  # it is ending
            return None
        found[name] = int(match[1]) / scale
    found["objects"] = s["objects"] + s["connections"]
    found["clients"] = s["clients"]
    found["qps"] = s["qps"]
    return found


class Watch:
    """A thread that samples all engines, and the samples of engines at rest."""

    def __init__(self, places, interval):
        self.places = places
        self.interval = interval
        self.start = time.monotonic()
        self.samples = []  # (seconds, engine, pid, values)
        self.rests = {}  # (engine, pid): values of each rest
        self.kills = []  # seconds, engine
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def now(self):
        return time.monotonic() - self.start

    def engines(self):
        for place in self.places:
            for side, engine in list(place.rig.engines.items()):
                name = place.name if len(set(place.sides)) == 1 else f"{place.name} {side}"
                yield place, side, name, engine.pid

    def run(self):
        while not self.over.wait(self.interval):
            for place, side, name, pid in self.engines():
                values = held(place, side, pid)
                if values is not None:
                    self.samples.append((self.now(), name, pid, values))

    def end(self):
        self.over.set()
        self.thread.join(60)

    # -- engines that nobody uses -----------------------------------------------------------

    def rest(self, place, side, name, pid):
        """Waits until it holds nothing for anybody. Fails if that does not come."""
        last = {}

        def sample():
            if not place.rig.engines[side].alive():
                raise Failure(f"the engine of {name} ended: {place.rig.engines[side].tail()}")
            return held(place, side, pid) or {}

        def is_empty():
            last.update(sample())
            return last and last["objects"] == last["clients"] == 0

        def is_settled():
            before = dict(last)
            last.update(sample())
            return all(last[k] == before[k] for k in ("descriptors", "mappings", "threads"))
        try:
            wait_until(f"the end of all objects of {name}", REST_S, is_empty, 0.2)
            wait_until(f"the last end behind the objects of {name}", SETTLE_S, is_settled, 0.5)
        except Failure as problem:
            raise Failure(f"{problem}: {last}") from None
        self.rests.setdefault((name, pid), []).append(last)
        self.samples.append((self.now(), name, pid, last))

    def judge(self):
        """For each engine that saw three rests and each metric: (what it held, problem or None)."""
        for (name, _), rests in self.rests.items():
            third = len(rests) // 3
            if third == 0:
                continue
            for metric, what, later, at_first in METRICS:
                values = [rest[metric] for rest in rests]
                is_long = len(rests) >= LONG
                before = statistics.median(values[third:-third]) if is_long else values[0]
                after = statistics.median(values[-third:]) if is_long else values[-1]
                limit = before + (later if is_long else at_first)
                said = f"{name}: {what} at rest: {before:.0f}, then {after:.0f}"
                yield said, None if after <= limit else f"{said}: more than {limit:.0f}"

    def write(self, path):
        with open(path, "w", newline="") as out:
            writer = csv.writer(out)
            names = [metric[0] for metric in METRICS] + ["clients", "qps"]
            writer.writerow(["seconds", "engine", "pid", *names])
            for at, name, pid, values in sorted(self.samples, key=lambda s: s[0]):
                writer.writerow([f"{at:.1f}", name, pid,
                                 *[f"{values[n]:g}" for n in names]])
