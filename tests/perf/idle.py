#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What engines and queue pairs cost that have nothing to do: unmodified perftest on uroced.

    tests/perf/idle.py [--rounds N] [--build DIR]

A round measures ib_write_bw of 8 octets and of 64 KiB within one engine, alone and beside 10,000 queue pairs of
another program that are connected and silent; then ib_send_lat of 8 octets with events (-e), so programs and
engines sleep whenever they wait: within one engine, and between two engines on a veth (net_af_packet). Beside
that stands what a wake-up alone costs on this machine (wake_bench.c). Prints medians, with the lowest and the
highest. Run it as root, while nothing else runs.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

import rig as rigs
from programs import run_pair_text, table_rows
from rig import ROOT, wait_until

QPS = 10000
SIZES = {"8": "M/s", "65536": "MiB/s"}


def bandwidth(rig, size):
    row = table_rows(run_pair_text(rig, ["ib_write_bw", "-s", size, "-D", "2"]))[-1]
    return float(row[4 if size == "8" else 3])


def hold(rig):
    """A program whose queue pairs do nothing."""
    program = rig.program("a", [str(rig.build / "tests/perf/many-objects"), str(QPS), "2", "1000",
                                "hold"], name="holder")
    wait_until(f"{QPS} queue pairs", 120, lambda: "held" in program.output())
    return program


def latency(rig):
    """Half a round trip in us, typical: perftest's word for the median."""
    text = run_pair_text(rig, ["ib_send_lat", "-e", "-s", "8", "-n", "5000"])
    return float(re.search(r"^ *8 +5000 +[\d.]+ +[\d.]+ +([\d.]+)", text, re.MULTILINE)[1])


def measure(build, found):
    def note(what, value):
        found.setdefault(what, []).append(value)

    wakes = subprocess.run([build / "tests/perf/wake-bench"], capture_output=True, text=True, check=True)
    for where, us in zip(("one processor", "two"), wakes.stdout.split()):
        note(f"two processes that wake each other, {where}, us", float(us))
    with rigs.same_host(build) as rig:
        for size, unit in SIZES.items():
            note(f"ib_write_bw, {size} octets, alone, {unit}", bandwidth(rig, size))
        program = hold(rig)
        for size, unit in SIZES.items():
            note(f"ib_write_bw, {size} octets, beside {QPS} idle queue pairs, {unit}",
                 bandwidth(rig, size))
        program.end()
        note("ib_send_lat -e, 8 octets, one engine, us", latency(rig))
    with rigs.veth(build, 4200) as rig:
        note("ib_send_lat -e, 8 octets, two engines on a veth, us", latency(rig))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    options = parser.parse_args()
    found = {}
    for _ in range(options.rounds):
        measure(options.build.resolve(), found)
    for what, values in found.items():
        print(f"{what:64} {statistics.median(values):10.2f}  ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
