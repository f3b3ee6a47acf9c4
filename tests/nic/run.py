#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce on the network cards that QEMU emulates: every case on each card, one line per case.

    tests/nic/run.py [--nic KIND]... [--case PATTERN]... [--quick] [--table FILE] [--list] [--build DIR]

Needs root, qemu-system-x86, busybox-static, cpio, kmod and Debian's repository (for the kernel of
the guest, kept below the build folder). PATTERN is a shell pattern over names like
e1000e/1500/v4/write. One guest has all the cards. --table writes the cases and cards as Markdown
into a page (docs/ports.md), whose other text stays, as the cells of cases that do not run now do.
"""

import argparse
import fnmatch
import pathlib
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
for folder in ("end_to_end", "interop", "nic"):
    sys.path.insert(0, str(HERE.parent / folder))

import rig as rigs  # noqa: E402
from machine import Machine  # noqa: E402
from nic_cases import CASES  # noqa: E402
from nics import NICS  # noqa: E402
from nic_table import NicTable  # noqa: E402
from wire import open_wire, tidy  # noqa: E402


def chosen(arguments):
    """{Nic: [(name, case)]}"""
    found = {}
    for nic in NICS.values():
        if arguments.nic and nic.name not in arguments.nic:
            continue
        for case in CASES:
            name = f"{nic.name}/{case.name}"
            if arguments.case and not any(fnmatch.fnmatch(name, p) for p in arguments.case):
                continue
            if case.fits(nic) and (nic.name in case.quick or not arguments.quick):
                found.setdefault(nic, []).append((name, case))
    return found


def checked(case, wire):
    wire.use(case.setup)
    remark = case.function(wire)
    wire.rig.check_healthy()
    if wire.guest.engine is not None:
        wire.guest.check_engine()
    return remark


def run_card(table, wire, index, todo):
    """False: the guest does not come back after a failure."""
    place = "the engine at the other end"
    try:
        wire.choose(index)
        for place, case in todo:
            if not table.run(place, lambda: checked(case, wire)):
                tidy(wire)
    except (rigs.Failure, subprocess.TimeoutExpired) as failure:
        table.fail(f"after {place}, the rest of {wire.nic.name}", failure)
        return False
    return True


def run_all(table, todo, build):
    """Boots the guest again if it was lost."""
    left = list(todo)
    while left:
        began = time.monotonic()
        try:
            wire = open_wire(build, left)
        except rigs.Skipped as reason:
            for name in (name for nic in left for name, _ in todo[nic]):
                table.skip(name, reason)
            return
        except (rigs.Failure, subprocess.TimeoutExpired) as failure:
            table.fail(f"a guest with {', '.join(nic.name for nic in left)}", failure)
            return
        try:
            print(f"the guest is up after {time.monotonic() - began:.0f} s", flush=True)
            left = run_guest(table, wire, left, todo)
        finally:
            wire.rig.close()


def run_guest(table, wire, nics, todo):
    """The cases that need another guest."""
    for index, nic in enumerate(nics):
        if not run_card(table, wire, index, todo[nic]):
            return nics[index + 1:]
    return []


def end(*_):
    sys.exit(143)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nic", metavar="KIND", action="append", choices=list(NICS),
                        help=f"one of {', '.join(NICS)}; may be repeated")
    parser.add_argument("--case", metavar="PATTERN", action="append", help="may be repeated")
    parser.add_argument("--quick", action="store_true", help="the short form of ./check")
    parser.add_argument("--table", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build", default=HERE.parents[1] / "build", type=pathlib.Path)
    arguments = parser.parse_args()
    todo = chosen(arguments)
    if not todo:
        parser.error("no case matches; --list shows all names")
    if arguments.list:
        for rows in todo.values():
            for name, _ in rows:
                print(name)
        return 0
    # A signal ends the run as an exception, so that everything is cleaned up.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    if arguments.quick:
        Machine.be_quick()
    rigs.remove_leftovers()
    build = arguments.build.resolve()
    if not (build / "apps/uroced").exists():
        sys.exit(f"{build}/apps/uroced does not exist: build first")
    table = NicTable()
    began = time.monotonic()
    try:
        run_all(table, todo, build)
    finally:  # an interrupted run also keeps its results
        if arguments.table:
            table.write(arguments.table, list(NICS.values()), CASES)
    print(f"all of it in {time.monotonic() - began:.0f} s", flush=True)
    return table.end()


if __name__ == "__main__":
    sys.exit(main())
