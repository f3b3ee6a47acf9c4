#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What loss and reordering leave of one queue pair's figures, in virtual time.

    tests/perf/simulated_loss.py [--time TIME] [--peers P] [--seed N] [--goals] [--build DIR]

The table of loss.sh from the simulator: one queue pair between two hosts that are as fast as engines on
net_memif (30 Gbit/s, 15 us of round trip, 200 ns for a packet), 128 requests under way as perftest has,
loss in each direction. It follows from the seed, so it is the same on every machine, and however busy
that is. --goals also runs an incast, a long fat path and many queue pairs, and compares all figures with
what is aimed at. Exit status 1 if a run broke a rule, or a figure misses its goal.
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

# At LOSSES[1:]: the least per cent of what is left, and the most us
LARGE = (95, 85, 60, 40)
GOALS = {"WRITE 64 KiB": LARGE, "SEND 64 KiB": LARGE, "READ 64 KiB": LARGE,
         "WRITE 8 octets": (90, 75, 45, 25)}
LATENCY_GOALS = (200, 500, 2000, 5000)

# name, words, {figure: (least, most)}
INCAST = {"use": (0.9, None), "dropped": (None, 0.001), "fairness": (0.95, None),
          "of_ideal": (None, 3)}
SHARED = [
    ("incast, marks past 64 KiB",
     ["--scenario", "incast:64", "--timeout", "8", "--time", "100ms"], INCAST),
    ("incast, no marks",
     ["--scenario", "incast:64", "--timeout", "8", "--time", "100ms", "--ecn", "0"], INCAST),
    ("10 Gbit/s over 10 ms, 0.1 % lost",
     ["--scenario", "bottleneck:1", "--trunk-delay", "5ms", "--loss", "0.001", "--depth", "512",
      "--buffer", "16M", "--ecn", "0", "--time", "1000ms"], {"use": (0.8, None)}),
    ("1 queue pair, 8 octets", ["--scenario", "many:1"], {"again": (None, 0.001)}),
    ("1024 queue pairs, 8 octets", ["--scenario", "many:1024"],
     {"of_one": (0.8, None), "again": (None, 0.001), "gave_up": (None, 0)}),
    ("16384 queue pairs, 8 octets", ["--scenario", "many:16384"],
     {"of_one": (0.6, None), "again": (None, 0.001), "gave_up": (None, 0)}),
]


class Simulator:
    def __init__(self, options):
        self.words = [str(options.build / "tests/sim/uroce-sim"), "--json",
                      "--peers", options.peers, "--seed", str(options.seed)]
        self.pair = ["--scenario", "reorder", *HOSTS, "--time", options.time]
        self.broken = 0

    def run(self, *words):
        """The figures of one run of a pair; None: a queue pair failed."""
        return self.run_scenario([*self.pair, *words])

    def run_scenario(self, words):
        done = subprocess.run([*self.words, *words], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{' '.join(words)}: {done.stderr.strip()}", file=sys.stderr)
            self.broken += 1
            return None
        return json.loads(done.stdout)


class Goals:
    """The goals, if --goals asks for them."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.missed = []
        self.met = 0

    def expect(self, name, value, least=None, most=None):
        if not self.wanted:
            return
        bound = f"at least {least:g}" if least is not None else f"at most {most:g}"
        if value is None:
            self.missed.append(f"{name}: no figure, {bound} is aimed at")
        elif (least is not None and value < least) or (most is not None and value > most):
            self.missed.append(f"{name}: {value:g}, {bound} is aimed at")
        else:
            self.met += 1


def share_of(found, base):
    """Per cent of the rate; None: a run failed."""
    if found is None or base is None:
        return None
    return found["messages_per_second"] / base["messages_per_second"] * 100


def cell(found, base):
    share = share_of(found, base)
    if share is None:
        return "fails"
    return f"{share:.{0 if share >= 10 else 2}f} %"


def run_shared(simulator, goals):
    print("\n| | use | messages/s | dropped | fairness | 99 % within, of the ideal | sent again |\n"
          "|---|---|---|---|---|---|---|")
    one = None
    for name, words, bounds in SHARED:
        found = simulator.run_scenario(words)
        if found is None:
            print(f"| {name} | fails | | | | | |")
        else:
            one = one or (found["messages_per_second"] if "many:1" in words else None)
            found["of_ideal"] = found["p99_ns"] / found["ideal_ns"]
            found["of_one"] = found["messages_per_second"] / one if one else None
            print(f"| {name} | {found['use'] * 100:.1f} % | {found['messages_per_second']:,.0f} "
                  f"| {found['dropped'] * 100:.3f} % | {found['fairness']:.3f} "
                  f"| {found['of_ideal']:.2f} | {found['again'] * 100:.3f} % |", flush=True)
        for figure, (least, most) in bounds.items():
            goals.expect(f"{name}, {figure}", found and found[figure], least, most)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--build", default=root / "build", type=pathlib.Path)
    parser.add_argument("--time", default="300ms", help="of each run (300ms)")
    parser.add_argument("--peers", default="uroce", help="uroce, linux or dcqcn (uroce)")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--goals", action="store_true",
                        help="more scenarios, and what is aimed at; uroce only")
    options = parser.parse_args()
    if options.goals and options.peers != "uroce":
        parser.error("--goals are uroce's: without --peers")
    goals = Goals(options.goals)
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
        for loss, one, least in zip(LOSSES[1:], found[1:], GOALS[name]):
            goals.expect(f"{name}, {loss * 100:g} % lost, % of the rate", share_of(one, found[0]),
                         least=least)
    slow = [simulator.run("--reorder", "0", "--loss", str(loss), *LATENCY) for loss in LOSSES]
    print("| 99.9 % of 8-octet WRITEs took, us | " +
          " | ".join("fails" if s is None else f"{s['p999_ns'] / 1000:.1f}" for s in slow) + " |")
    for loss, one, most in zip(LOSSES[1:], slow[1:], LATENCY_GOALS):
        goals.expect(f"99.9 %, {loss * 100:g} % lost, us", one and one["p999_ns"] / 1000, most=most)
    base = simulator.run("--reorder", "0", *DEEP)
    late = simulator.run("--reorder", "0.01", "--places", "32", *DEEP)
    again = "fails" if late is None else f"{late['again'] * 100:.3f} %"
    print(f"\n1 % of frames reordered by up to 32 places: {cell(late, base)}, {again} of the packets "
          "sent again")
    goals.expect("reordered, % of the rate", share_of(late, base), least=90)
    goals.expect("reordered, share sent again", late and late["again"], most=0.001)
    if options.goals:
        run_shared(simulator, goals)
        print(f"\n{goals.met} goals met, {len(goals.missed)} missed")
    for missed in goals.missed:
        print(missed)
    return 1 if simulator.broken or goals.missed else 0


if __name__ == "__main__":
    sys.exit(main())
