#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce and Linux: every case with uroce as client and as server, one line per case.

    tests/interop/run.py [--case PATTERN]... [--quick] [--list] [--build DIR]

Needs root, qemu-system-x86, busybox-static, cpio, kmod and Debian's repository (for the kernel of
the guest, kept below the build folder). PATTERN is a shell pattern over names like
v4/rc_pingpong/client: the role is uroce's.
"""

import argparse
import fnmatch
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))
sys.path.insert(0, str(HERE))

import rig as rigs  # noqa: E402
from case import Wire  # noqa: E402
from cases import CASES  # noqa: E402
from guest import Guest  # noqa: E402
from machine import Machine, Silent  # noqa: E402
from table import Table  # noqa: E402

OURS = ("10.9.0.1", "fd09::1")
THEIRS = ("10.9.0.2", "fd09::2")


MTU = 4200


def wire(build):
    """A namespace with a tap: the engine shares it with this kernel, and the guest is at its other
    end."""
    rig = rigs.Rig(build)
    try:
        rig.namespace("a")
        rigs.sh(*rig.inside("a"), "ip", "tuntap", "add", "tap0", "mode", "tap")
        rig.ip("a", "link", "set", "tap0", "mtu", str(MTU), "up")
        rig.ip("a", "address", "add", f"{OURS[0]}/24", "dev", "tap0")
        rig.ip("a", "address", "add", f"{OURS[1]}/64", "dev", "tap0", "nodad")
        guest = Guest(rig, "a", "tap0", THEIRS, MTU, build / "interop")
        rig.engine("a", options=["--netdev", "tap0"])
        return Wire(rig, guest, OURS, THEIRS)
    except BaseException:
        rig.close()
        raise


def chosen(arguments):
    for case in CASES:
        for role in case.roles:
            name = f"{case.name}/{role}" if role else case.name
            if arguments.case and not any(fnmatch.fnmatch(name, p) for p in arguments.case):
                continue
            if arguments.quick and not case.quick:
                continue
            yield name, case, role


def with_a_guest(table, todo, build):
    began = time.monotonic()
    try:
        with_wire = wire(build)
    except rigs.Skipped as reason:
        for name, _, _ in todo:
            table.skip(name, reason)
        return
    except (rigs.Failure, subprocess.TimeoutExpired) as failure:
        table.fail("the guest", failure)
        return
    print(f"the guest is up after {time.monotonic() - began:.0f} s", flush=True)
    try:
        for name, case, role in todo:
            if not table.run(name, lambda: checked_again(case, with_wire, role)):
                try:
                    tidy(with_wire)
                except (rigs.Failure, subprocess.TimeoutExpired) as failure:
                    table.fail("the guest does not come back", failure)
                    return
    finally:
        with_wire.rig.close()


def checked(case, with_wire, role):
    remark = case.run(with_wire, role)
    with_wire.rig.check_healthy()
    return remark


def checked_again(case, with_wire, role):
    """An emulator that stands still says nothing of uroce: once in a run, another one takes its place."""
    try:
        return checked(case, with_wire, role)
    except Silent as silent:
        if with_wire.guest.replaced:
            raise
        print(f"again, with another guest: {silent}", flush=True)
        with_wire.guest.replaced = True
        tidy(with_wire)
        return checked(case, with_wire, role)


def tidy(with_wire):
    """After a failure: kills all programs and makes sure that the guest runs."""
    with_wire.rig.check_healthy()
    for process in with_wire.rig.processes:
        if process is not with_wire.guest.qemu and process not in with_wire.rig.engines.values():
            process.end()
    with_wire.guest.tidy()


def end(*_):
    sys.exit(143)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", metavar="PATTERN", action="append", help="may be repeated")
    parser.add_argument("--quick", action="store_true", help="only what ./check runs")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build", default=str(HERE.parents[1] / "build"), type=pathlib.Path)
    arguments = parser.parse_args()
    todo = list(chosen(arguments))
    if arguments.list:
        for name, _, _ in todo:
            print(name)
        return 0
    signal.signal(signal.SIGTERM, end)
    if arguments.quick:
        Machine.be_quick()
    rigs.remove_leftovers()
    build = arguments.build.resolve()
    table = Table()
    alone = [row for row in todo if getattr(row[1], "alone", False)]
    with_guest = [row for row in todo if row not in alone]
    if with_guest:
        with_a_guest(table, with_guest, build)
    for name, case, _ in alone:
        table.run(name, lambda: case.run(build))
    return table.end()


if __name__ == "__main__":
    sys.exit(main())
