#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What loss and reordering leave of one queue pair's figures, in virtual time.

    tests/perf/simulated_loss.py [--time TIME] [--peers P] [--seed N] [--build DIR]

The table of loss.sh from the simulator: one queue pair between two hosts that are as fast as engines on
net_memif (30 Gbit/s, 15 us of round trip, 200 ns for a packet), 128 requests under way as perftest has,
loss in each direction. It follows from the seed, so it is the same on every machine, and however busy
that is. Exit status 1 if a run broke a rule.
"""

import argparse
import json
import pathlib
import subprocess
import sys

LOSSES = [0, 0.001, 0.01, 0.05, 0.1]
HOSTS = ["--rate", "30G", "--delay", "3.5us", "--packet-time", "200ns"]
DEEP = ["--depth", "128"]
ROWS = {
    "WRITE 64 KiB": ["--operation", "write", *DEEP],
    "SEND 64 KiB": ["--operation", "send", *DEEP],
    "READ 64 KiB": ["--operation", "read", *DEEP],
    "WRITE 8 octets": ["--size", "8", *DEEP],
}
LATENCY = ["--size", "8", "--depth", "1"]


class Simulator:
    def __init__(self, options):
        self.words = [str(options.build / "tests/sim/uroce-sim"), "--scenario", "reorder",
                      *HOSTS, "--json", "--time", options.time, "--peers", options.peers,
                      "--seed", str(options.seed)]
        self.broken = 0

    def run(self, *words):
        """The figures of one run; None: a queue pair failed."""
        done = subprocess.run([*self.words, *words], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{' '.join(words)}: {done.stderr.strip()}", file=sys.stderr)
            self.broken += 1
            return None
        return json.loads(done.stdout)


def cell(found, base):
    if found is None or base is None:
        return "fails"
    share = found["messages_per_second"] / base["messages_per_second"] * 100
    return f"{share:.{0 if share >= 10 else 2}f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--build", default=root / "build", type=pathlib.Path)
    parser.add_argument("--time", default="300ms", help="of each run (300ms)")
    parser.add_argument("--peers", default="uroce", help="uroce, linux or dcqcn (uroce)")
    parser.add_argument("--seed", default=1, type=int)
    options = parser.parse_args()
    if not (options.build / "tests/sim/uroce-sim").exists():
        sys.exit(f"{options.build}/tests/sim/uroce-sim does not exist: build first")
    simulator = Simulator(options)
    print("| | no loss | " + " | ".join(f"{loss * 100:g} %" for loss in LOSSES[1:]) + " |")
    print("|---" * (len(LOSSES) + 1) + "|")
    for name, words in ROWS.items():
        if options.peers != "uroce" and name.split()[0] != "WRITE":
            continue
        found = [simulator.run("--reorder", "0", "--loss", str(loss), *words) for loss in LOSSES]
        rate = found[0] and f"{found[0]['messages_per_second']:,.0f} messages/s"
        print(f"| {name} | {rate or 'fails'} | "
              f"{' | '.join(cell(one, found[0]) for one in found[1:])} |", flush=True)
    slow = [simulator.run("--reorder", "0", "--loss", str(loss), *LATENCY) for loss in LOSSES]
    print("| 99.9 % of 8-octet WRITEs took, us | " +
          " | ".join("fails" if s is None else f"{s['p999_ns'] / 1000:.1f}" for s in slow) + " |")
    base = simulator.run("--reorder", "0", *DEEP)
    late = simulator.run("--reorder", "0.01", "--places", "32", *DEEP)
    again = "fails" if late is None else f"{late['again'] * 100:.3f} %"
    print(f"\n1 % of frames reordered by up to 32 places: {cell(late, base)}, {again} of the packets "
          "sent again")
    return 1 if simulator.broken else 0


if __name__ == "__main__":
    sys.exit(main())
