#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs unmodified Debian programs over engines of a build. Prints one line per case and a summary.

    run.py [--build DIR] [--case PATTERN]... [--list] [--quick] [--side-by-side N]
"""

import argparse
import fnmatch
import os
import pathlib
import signal
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import bad_wire
import cases
import ceph
import connections
import dapl
import devices
import faults
import kernel_interface
import libraries
import mpi
import offloads
import own_programs
import privileges
import programs
import raw
import rsockets
import storage
import under
import waking
import wires
from rig import RIGS, ROOT, Failure, Skipped, remove_leftovers

RIGS.update(kernel_interface.RIGS)


class Case:
    """One line of the output. `rig`: a name of RIGS, or None for a case that makes its own rig."""

    def __init__(self, name, rig, run, quick):
        self.name = name
        self.rig = rig
        self.run = run
        self.quick = quick


def program_case(place, family, name, line):
    def run(rig):
        words = line.format(mtu=rig.mtu, mgid=programs.MGID[family]).split()
        rig.calm = not ((place, family) == cases.AS_THEY_ARE_PLACE and name in cases.AS_THEY_ARE)
        try:
            return programs.run_pair(rig, words, family)
        finally:
            rig.calm = True
    full_name = f"{place}/{family}/{name}"
    quick = cases.QUICK if (place, family) in cases.QUICK_PLACES else cases.OTHER_PLACES_PROGRAMS
    return Case(full_name, place, run, name in quick or full_name in cases.QUICK_ALL_SIZES)


def user_case(place, name, line, users):
    def run(rig):
        wrappers = [programs.WRAPPERS[user] for user in users]
        return programs.run_pair(rig, line.split(), "v4", wrappers)
    return Case(f"{place}/users/{name}", place, run, True)


def fits(place, name):
    """A path MTU above the port's does not fit this rig: modify_qp refuses it."""
    return not ("1500" in place and name in ("pingpong-mtu2048", "pingpong-mtu4096"))


def all_cases():
    for place in dict.fromkeys(place for place, _ in cases.PLACES):
        yield Case(f"{place}/devinfo", place, wires.devinfo, True)
        for family in (family for rig, family in cases.PLACES if rig == place):
            for name, line in cases.PROGRAMS:
                if fits(place, name):
                    yield program_case(place, family, name, line)
        if place in cases.OTHER_USERS_PLACES:
            for row in cases.OTHER_USERS:
                yield user_case(place, *row)
        for name, run in wires.CASES.get(place, ()):
            yield Case(f"{place}/{name}", place, run, f"{place}/{name}" not in wires.LONG)
        for where, name, run, quick in [*connections.cases(), *raw.cases(), *devices.cases(),
                                        *rsockets.cases(), *storage.cases(), *mpi.cases(),
                                        *dapl.cases(), *under.cases(), *ceph.cases(),
                                        *libraries.cases()]:
            if where == place:
                yield Case(f"{place}/{name}", place, run, quick)
    for place in cases.OTHER_PLACES:
        for name, line in cases.PROGRAMS:
            if name in cases.OTHER_PLACES_PROGRAMS:
                yield program_case(place, "v4", name, line)
        for where, name, run, quick in raw.cases():
            if where == place:
                yield Case(f"{place}/{name}", place, run, quick)
    for place, name, run, quick in kernel_interface.cases():
        yield Case(f"{place or 'kernel'}/{name}", place, run, quick)
    yield Case("faults/files-of-an-engine", None, devices.engine_ends, True)
    for name, run in [*faults.CASES, *bad_wire.CASES, *own_programs.CASES]:
        yield Case(f"faults/{name}", None, run, name not in bad_wire.LONG)
    for name, run in offloads.CASES:
        yield Case(f"offloads/{name}", None, run, True)
    for name, run in privileges.CASES:
        yield Case(f"privileges/{name}", None, run, True)
    for name, run in waking.CASES:
        yield Case(f"waking/{name}", None, run, True)


def chosen(arguments):
    found = [case for case in all_cases()
             if (not arguments.case and (case.quick or not arguments.quick)) or
             any(fnmatch.fnmatch(case.name, pattern) for pattern in arguments.case)]
    if not found:
        sys.exit("no case matches; --list shows all names")
    return found


class Runner:
    """Runs cases one after the other."""

    def __init__(self, build):
        self.build = build
        self.rig = None
        self.passed = self.failed = self.skipped = 0

    def prepare(self, case):
        """Cases on one place share its engines; an engine that broke is replaced."""
        if self.rig is None and case.rig is not None:
            self.rig = RIGS[case.rig](self.build)
        return self.rig

    def close(self):
        if self.rig is not None:
            self.rig.close()
        self.rig = None

    def place(self, cases_there):
        try:
            for case in cases_there:
                self.one(case)
        finally:
            self.close()

    def one(self, case):
        start = time.monotonic()
        try:
            rig = self.prepare(case)
            said = case.run(rig) if rig else case.run(self.build)
            verdict, self.passed = "ok  ", self.passed + 1
        except (Failure, OSError, subprocess.TimeoutExpired) as problem:
            said, verdict, self.failed = str(problem), "FAIL", self.failed + 1
            self.close()
        except Skipped as reason:
            said, verdict, self.skipped = str(reason), "skip", self.skipped + 1
            self.close()
        except Exception as mistake:  # of the case: the others run all the same
            traceback.print_exc()
            said, verdict, self.failed = repr(mistake), "FAIL", self.failed + 1
            self.close()
        took = time.monotonic() - start
        # in one write, as another process may print, too
        os.write(1, f"{verdict} {case.name:36} {took:5.1f} s  {said or ''}\n".encode())

    @property
    def counts(self):
        return self.passed, self.failed, self.skipped


def by_place(found):
    """The cases of each place together; a case that makes its own rig is alone."""
    places = {}
    for i, case in enumerate(found):
        places.setdefault(case.rig or i, []).append(case)
    return list(places.values())


def work_on(places, numbers, report, build):
    """A process of its own: takes one place after the other and reports its counts at the end."""
    runner = Runner(build)
    while number := os.read(numbers, 1):
        runner.place(places[number[0]])
    os.write(report, " ".join(map(str, runner.counts)).encode())


# Their engine's lcores take turns with the programs on all processors, and ibv_rc_pingpong gives up when one of
# them waits for 1.7 s.
ALONE = {"lcores", "lcores4200"}


def begin_worker(*arguments):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work_on(*arguments)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)  # cleaning up is done; what comes behind belongs to the parent
    return pid


def run_side_by_side(places, build, workers):
    """Every place has its own namespaces, engines and files. Returns the counts."""
    numbers, ours = os.pipe()
    os.write(ours, bytes(range(len(places))))
    os.close(ours)
    left = {}
    counts = []
    try:
        for _ in range(workers):
            theirs, report = os.pipe()
            left[begin_worker(places, numbers, report, build)] = theirs
            os.close(report)
        while left:
            pid, _ = os.wait()
            counts.append(os.read(left.pop(pid), 100).decode().split() or None)
    finally:
        for pid in left:
            os.kill(pid, signal.SIGTERM)
        for pid in left:
            os.waitpid(pid, 0)
    if None in counts:
        sys.exit("a process that ran cases did not come to its end")
    return [sum(map(int, column)) for column in zip(*counts)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--case", action="append", default=[], metavar="PATTERN",
                        help="run only these (shell pattern, may be repeated)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--quick", action="store_true", help="run a selection of the cases")
    parser.add_argument("--side-by-side", type=int, default=1, metavar="N",
                        help="run the cases of up to N places at once")
    arguments = parser.parse_args()
    found = chosen(arguments)
    if arguments.list:
        print("\n".join(case.name for case in found))
        return 0
    if os.geteuid() != 0:
        sys.exit("the end-to-end tests create network namespaces: run them as root")
    if not (arguments.build / "apps/uroced").exists():
        sys.exit(f"{arguments.build}/apps/uroced does not exist: build first")
    # A signal ends the run as an exception, so that everything is cleaned up.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    remove_leftovers()
    build, counts = arguments.build.resolve(), []
    for places, workers in ((by_place(case for case in found if case.rig not in ALONE),
                             max(1, arguments.side_by_side)),
                            (by_place(case for case in found if case.rig in ALONE), 1)):
        if places:
            counts.append(run_side_by_side(places, build, workers))
    passed, failed, skipped = map(sum, zip(*counts))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
