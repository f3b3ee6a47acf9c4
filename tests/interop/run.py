#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""uroce and Linux: every case with uroce as client and as server, a line a case.

    tests/interop/run.py [--case PATTERN] [--quick] [--list] [--build DIR]

Needs root, qemu-system-x86, busybox-static, cpio, kmod and Debian's repository (for the kernel of
the guest, kept below the build folder). PATTERN is a shell pattern over names like
v4/rc_pingpong/client: the role is uroce's.
"""

import argparse
import fnmatch
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))
sys.path.insert(0, str(HERE))

import rig as rigs  # noqa: E402
from case import Wire  # noqa: E402
from cases import CASES  # noqa: E402
from guest import Guest  # noqa: E402

OURS = ("10.9.0.1", "fd09::1")
THEIRS = ("10.9.0.2", "fd09::2")


def wire(build, mtu):
    """A namespace with a tap: our engine shares it with this kernel, the guest is at its end."""
    rig = rigs.Rig(build)
    try:
        rig.namespace("a")
        rigs.sh(*rig.inside("a"), "ip", "tuntap", "add", "tap0", "mode", "tap")
        rig.ip("a", "link", "set", "tap0", "mtu", str(mtu), "up")
        rig.ip("a", "address", "add", f"{OURS[0]}/24", "dev", "tap0")
        rig.ip("a", "address", "add", f"{OURS[1]}/64", "dev", "tap0", "nodad")
        guest = Guest(rig, "a", "tap0", THEIRS[0], THEIRS[1], mtu, build / "interop")
        guest.run(["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "eth0"])
        rigs.wait_until("the GID of the guest's rxe0", 20, lambda: all(
            address in (out := guest.run(["ibv_devinfo", "-v", "-d", "rxe0"])) for address in THEIRS),
            0.2)
        rig.engine("a", options=["--netdev", "tap0"])
        return Wire(rig, guest, OURS, THEIRS)
    except BaseException:
        rig.close()
        raise


def chosen(arguments):
    for case in CASES:
        for role in case.roles:
            name = f"{case.name}/{role}"
            if arguments.case and not fnmatch.fnmatch(name, arguments.case):
                continue
            if arguments.quick and not case.quick:
                continue
            yield name, case, role


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", metavar="PATTERN")
    parser.add_argument("--quick", action="store_true", help="only what ./check runs")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build", default=str(HERE.parents[1] / "build"), type=pathlib.Path)
    arguments = parser.parse_args()
    todo = list(chosen(arguments))
    if arguments.list:
        for name, _, _ in todo:
            print(name)
        return 0
    rigs.remove_leftovers()
    passed = failed = 0
    began = time.monotonic()
    try:
        with_wire = wire(pathlib.Path(arguments.build).resolve(), 4200)
    except rigs.Failure as failure:
        print(f"FAIL the guest: {failure}\n0 passed, 1 failed")
        return 1
    print(f"the guest is up after {time.monotonic() - began:.0f} s")
    try:
        for name, case, role in todo:
            start = time.monotonic()
            try:
                case.run(with_wire, role)
                with_wire.rig.check_healthy()
                passed += 1
                print(f"ok   {name} ({time.monotonic() - start:.1f} s)", flush=True)
            except rigs.Failure as failure:
                failed += 1
                print(f"FAIL {name}: {failure}", flush=True)
    finally:
        with_wire.rig.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
