#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Loads engines for hours, kills programs and engines, and looks whether anything grows.

    run.py [--hours N] [--minutes N] [--quick] [--place NAME]... [--failures N] [--qps N]
           [--rate N] [--seed N] [--build DIR] [--output DIR]

A run is rounds. In each of them every place (places.py) has a pair of programs with many queue
pairs (load.c) from the beginning to the end of the round, and others that come and go. Meanwhile
programs are killed or stopped, engines are killed, and a cable is pulled. At the end of a round all
programs agree on what was sent, and engines must hold nothing any more. In the folder of --output
(by default BUILD/soak) are samples.csv and soak.svg then. The last line is 'N passed, N failed':
each program that ended as it should, each engine that was empty, and each figure that did not grow
counts.
"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "end_to_end")]

import load
import plot
from places import PLACES, PROGRAMS
from rig import ADDRESS, ROOT, Failure, remove_leftovers
from watch import METRICS, Watch

PLOTTED = [(name, what) for name, what, *_ in METRICS if name != "threads"]
SHORTEST = 6  # seconds that are left of a round in which a new pair begins


class Soak:
    def __init__(self, arguments):
        self.a = arguments
        self.random = random.Random(arguments.seed)
        self.places = []
        self.watch = None
        self.standing = {}  # of each place
        self.guests = []  # programs that come and go
        self.later = []  # (when, what to do)
        self.passed = self.failed = 0
        self.sums = dict.fromkeys(load.SUMS, 0)
        self.happened = {}
        self.most_qps = 0

    # -- verdicts ---------------------------------------------------------------------------

    def good(self):
        self.passed += 1

    def bad(self, problem):
        self.failed += 1
        print(f"FAIL {problem}", flush=True)

    def count(self, what):
        self.happened[what] = self.happened.get(what, 0) + 1

    def finish(self, program):
        try:
            for name, value in program.finish().items():
                self.sums[name] = self.sums.get(name, 0) + value
            self.good()
        except Failure as problem:
            self.bad(problem)

    # -- a round ----------------------------------------------------------------------------

    def seed(self):
        return self.random.randrange(1 << 48)

    def begin_standing(self, place):
        left = self.round_end - time.monotonic()
        if left >= SHORTEST:
            self.standing[place] = load.Pair(place, self.a.qps, left, self.a.rate, self.a.calm,
                                             self.seed())

    def round(self, seconds):
        self.round_end = time.monotonic() + seconds
        for place in self.places:
            self.begin_standing(place)
        while time.monotonic() < self.round_end:
            self.do_what_is_due()
            self.look_at_guests()
            if time.monotonic() < self.round_end - SHORTEST:
                self.something()
            time.sleep(self.random.uniform(0.1, 2 * self.a.pause))
        self.do_what_is_due(True)
        for program in [*self.guests, *self.standing.values()]:
            self.finish(program)
        self.guests, self.standing = [], {}
        for engine in self.watch.engines():
            try:
                self.watch.rest(*engine)
                self.good()
            except Failure as problem:
                self.bad(problem)

    def do_what_is_due(self, at_once=False):
        due = [what for at, what in self.later if at_once or at <= time.monotonic()]
        self.later = [entry for entry in self.later if entry[1] not in due]
        for what in due:
            what()

    def look_at_guests(self):
        for program in [p for p in self.guests if not p.alive()]:
            self.guests.remove(program)
            self.finish(program)
        for place, program in list(self.standing.items()):
            if not program.alive():  # doomed, or it failed
                del self.standing[place]
                self.finish(program)
                self.begin_standing(place)
        self.most_qps = max(self.most_qps, sum(
            p.qps for p in [*self.guests, *self.standing.values()] if hasattr(p, "qps")))

    # -- what happens meanwhile -------------------------------------------------------------

    def something(self):
        often = self.a.failures
        chances = ((self.new_pair, 10), (self.kill_program, 4), (self.stop_program, 2),
                   (self.every_verb, 2), (self.connections, 2), (self.pull_cable, 2 * often),
                   (self.kill_engine, often))
        what, = self.random.choices(*zip(*chances))
        try:
            what()
        except Failure as problem:
            self.bad(problem)

    def at(self, place):
        return [p for p in self.guests if p.place is place]

    def new_pair(self):
        place = self.random.choice(self.places)
        left = self.round_end - time.monotonic()
        if len(self.at(place)) >= 3 or left < SHORTEST:
            return
        self.count("pairs")
        # copies of another user's programs are made by movers
        self.guests.append(load.Pair(place, self.random.choice((8, 40, self.a.qps // 4)),
                                     self.random.uniform(2, min(30, left)), self.a.rate // 2,
                                     self.a.calm, self.seed(), nobody=self.random.random() < 0.3,
                                     gid=self.random.choice((1, 2))))

    def pairs(self):
        return [p for p in self.guests if isinstance(p, load.Pair) and p.alive()]

    def kill_program(self):
        ready = [p for p in self.pairs() if not p.doomed and p.running()]
        if ready:
            self.random.choice(ready).kill(self.random.randrange(2))
            self.count("programs killed")

    def stop_program(self):
        ready = [p for p in self.pairs() if p.stopped is None and p.running()]
        if ready:
            program = self.random.choice(ready)
            program.stop()
            self.later.append((time.monotonic() + self.random.uniform(0.2, 2), program.go_on))
            self.count("programs stopped")

    def every_verb(self):
        place = self.random.choice(self.places)
        if not any(isinstance(p, load.EveryVerb) for p in self.at(place)):
            side = self.random.choice(place.sides)
            if side not in place.mortal:
                self.guests.append(load.EveryVerb(place, side))
                self.count("every-verb")

    def connections(self):
        places = [p for p in self.places if p.orderly and not p.mortal and
                  not any(isinstance(g, load.Connections) for g in self.at(p))]
        if places:
            place = self.random.choice(places)
            self.guests.append(load.Connections(place, ADDRESS[place.sides[0]][0]))
            self.count("connections of rdma_cm")

    def pull_cable(self):
        """Nothing else meanwhile: reliable queue pairs give up after 8.6 s."""
        for place in self.places:
            if place.has_link:
                place.link_down()
                time.sleep(self.random.uniform(0.1, 0.7))
                place.link_up()
                self.count("cable pulled")

    def kill_engine(self):
        """Not while somebody there begins: programs say what is wrong then, and end."""
        mortal = [p for p in self.places if p.mortal]
        if not mortal:
            return
        place = self.random.choice(mortal)
        programs = [p for p in [*self.guests, *self.standing.values()] if p.place is place]
        if not all(p.running() for p in programs if p.alive()):
            return
        for program in programs:
            program.doomed = True
        side = self.random.choice(place.mortal)
        self.watch.kills.append((self.watch.now(), place.name))
        place.kill(side)
        self.count("engines killed")

    # -- all of it --------------------------------------------------------------------------

    def run(self):
        begin = time.monotonic()
        for place in self.a.places:
            self.places.append(place(self.a.build, self.a.seed))
        self.watch = Watch(self.places, self.a.interval)
        number = 0
        while number < self.a.rounds or (self.a.rounds == 0 and
                                         time.monotonic() - begin < self.a.seconds):
            number += 1
            self.round(self.a.round)
            print(f"round {number:3}  {(time.monotonic() - begin) / 60:6.1f} min  "
                  f"{self.sums['messages']} messages, {self.sums['octets'] >> 20} MiB checked so "
                  f"far; up to {self.most_qps} queue pairs", flush=True)

    def report(self):
        if self.watch is None:
            return
        self.watch.end()
        for said, problem in self.watch.judge():
            if problem:
                self.bad(problem)
            else:
                self.good()
                print(f"ok   {said}")
        print(", ".join(f"{n} {what}" for what, n in {**self.sums, **self.happened}.items()))
        self.a.output.mkdir(parents=True, exist_ok=True)
        self.watch.write(self.a.output / "samples.csv")
        title = (f"{self.watch.now() / 60:.0f} minutes, up to {self.most_qps} queue pairs; "
                 f"dotted: an engine was killed")
        plot.draw(self.a.output / "soak.svg", title, self.watch.samples, self.watch.kills, PLOTTED)
        print(f"drawn: {self.a.output}/soak.svg")

    def close(self):
        for place in self.places:
            place.close()


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=0)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--quick", action="store_true", help="two minutes, and less of everything")
    parser.add_argument("--place", action="append", choices=[place.name for place in PLACES],
                        help="only this one, and others that are named so; by default all")
    parser.add_argument("--failures", type=int, default=1, metavar="N",
                        help="engines killed and cables pulled N times as often")
    parser.add_argument("--qps", type=int, help="queue pairs on each side of each place")
    parser.add_argument("--rate", type=int, help="operations a second of a program")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    a = parser.parse_args()
    a.build = a.build.resolve()
    a.output = a.output or a.build / "soak"
    a.places = [p for p in PLACES if a.place is None or p.name in a.place]
    a.seconds = a.hours * 3600 + a.minutes * 60 or 300
    a.rounds = 4 if a.quick else 0
    a.qps = a.qps or (150 if a.quick else 600)
    a.rate = a.rate or (250 if a.quick else 1500)
    a.round = 27 if a.quick else min(150, a.seconds / 4)
    a.calm = 2 if a.quick else 1
    a.pause = 1.3 if a.quick else 1.5
    a.interval = 1 if a.quick else max(2, a.seconds / 900)
    return a


def interrupt(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


def main():
    a = read_arguments()
    if os.geteuid() != 0:
        sys.exit("the soak creates network namespaces: run it as root")
    missing = [name for name in ("apps/uroced", *PROGRAMS) if not (a.build / name).exists()]
    if missing:
        sys.exit(f"{a.build / missing[0]} does not exist: build first")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    remove_leftovers()
    print(f"seed {a.seed}", flush=True)
    soak = Soak(a)
    interrupted = False
    try:
        soak.run()
    except KeyboardInterrupt as reason:
        interrupted = True
        print(f"{reason}: what is under way is not judged", flush=True)
    except (Failure, OSError, subprocess.TimeoutExpired) as problem:
        soak.bad(problem)
    finally:
        try:
            soak.report()
        finally:
            soak.close()
    print(f"{soak.passed} passed, {soak.failed} failed")
    return 1 if soak.failed else 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
