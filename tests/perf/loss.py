#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What loss and reordering cost: unmodified perftest over two engines, beside the same without loss.

    tests/perf/loss.sh [--quick] [--rounds N] [--only PART]... [--json] [--build DIR]

Two uroced are joined by net_memif, and net_impair stands before each port and drops what that engine
sends: so packets are lost in each direction. A round measures every loss, the wire without loss first.
Ratios are made within a round, because the machine's speed changes from minute to minute; the median
of the rounds is printed. Then 1 % of frames reordered by up to 32 places, and two engines on
net_af_packet over veth, where nothing is dropped on purpose; both with the share of packets that were
sent again. What is aimed at stands in brackets. A round is 28 programs of 2 s (1 s
with --quick; over veth about twice as long) and 5 of 90 s at most (30 s), with engines that start 7
times. Exit status 1 if a program failed.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

import rig as rigs  # noqa: E402
from programs import run_pair_text, table_rows  # noqa: E402
from rig import ADDRESS, ROOT, Failure, wait_until  # noqa: E402

LOSSES = [0, 0.1, 1, 5, 10]  # percent of frames, in each direction
PARTS = ("rate", "latency", "reorder", "veth")

# name, words of the program, column of its table, unit
RATES = [
    ("WRITE 64 KiB", ["ib_write_bw", "-s", "65536"], 3, "MiB/s"),
    ("SEND 64 KiB", ["ib_send_bw", "-s", "65536"], 3, "MiB/s"),
    ("READ 64 KiB", ["ib_read_bw", "-s", "65536"], 3, "MiB/s"),
    ("WRITE 8 octets", ["ib_write_bw", "-s", "8"], 4, "M/s"),
]
TIMEOUT = ["-u", "14"]  # Debian's default: 67 ms
LARGE = (95, 85, 60, 40)
# At LOSSES[1:]: per cent of what is left, and us
GOALS = {"WRITE 64 KiB": LARGE, "SEND 64 KiB": LARGE, "READ 64 KiB": LARGE,
         "WRITE 8 octets": (90, 75, 45, 25), "latency": (200, 500, 2000, 5000)}
# Messages a second over veth, roughly: a number of messages has to be given in advance. It is a multiple of the depth,
# because perftest counts each completion as that many messages, and with several queue pairs waits for ever otherwise.
OVER_VETH = ((RATES[0], 4000), (RATES[3], 130000))
KEPT, AGAIN = 90, 0.1  # per cent: of the rate with reordering, and packets sent again


def impaired(build, what):
    """Two engines joined by memif. Each impairs the frames that it sends."""
    rig = rigs.two_namespaces(build)
    path = rig.folder / "memif.sock"
    for number, (side, role) in enumerate((("a", "server"), ("b", "client"))):
        v4, v6 = ADDRESS[side]
        memif = f"--vdev=net_memif0,role={role},socket={path},socket-abstract=no,bsize=8192,rsize=11"
        impair = f"--vdev=net_impair0,port=net_memif0,dir=tx,seed={1 + number},{what}"
        rig.engine(side, [memif, impair],
                   ["--port", "net_impair0", "--ip", f"{v4}/24,{v6}/64", "--mtu", "4200"])
    for side in "ab":
        wait_until(f"the link of side {side}", 20, lambda: rig.statistics(side)["active"], 0.05)
    rig.mtu = 4096
    return rig


def sent(rig):
    """Packets that both engines sent, and sent again."""
    both = [rig.statistics(side) for side in "ab"]
    return sum(s["tx_packets"] for s in both), sum(s["retransmitted"] for s in both)


class Share:
    """The share of packets sent again while its block runs."""

    def __init__(self, rig):
        self.rig = rig

    def __enter__(self):
        self.before = sent(self.rig)
        return self

    def __exit__(self, *_):
        packets, again = (now - was for now, was in zip(sent(self.rig), self.before))
        self.value = again / max(packets, 1)


class Run:
    def __init__(self, options):
        self.build = options.build.resolve()
        self.seconds = 1 if options.quick else 2
        self.exchanges = 2000 if options.quick else 10000
        self.patience = 30 if options.quick else 90  # seconds for them; then "too long" is printed
        self.failures = []
        self.found = {}  # (row, column) -> figures, one of each round

    def note(self, row, column, value):
        self.found.setdefault((row, column), []).append(value)

    def attempt(self, where, work):
        """The figure, or None if a program failed."""
        try:
            return work()
        except Failure as problem:
            self.failures.append(f"{where}: {problem}")
            print(f"{where}: {problem}", file=sys.stderr)
            return None

    def bandwidth(self, rig, words, column, more=()):
        """`more` may name a number of messages. Without it a program stops with messages on their way, and
        its queue pairs send them again until their end, because the peer's queue pairs are gone."""
        until = [] if "-n" in more else ["-D", str(self.seconds)]
        text = run_pair_text(rig, [*words, *until, *TIMEOUT, *more], limit=self.seconds + 60)
        return float(table_rows(text)[-1][column])

    def latency(self, rig, loss):
        """The 99.9 % latency of an 8-octet WRITE in us: half of a round trip."""
        words = ["ib_write_lat", "-s", "8", "-n", str(self.exchanges), *TIMEOUT]
        try:
            text = run_pair_text(rig, words, limit=self.patience)
        except Failure as problem:
            if "did not end" in str(problem):
                return float("inf")
            raise
        row = next(line.split() for line in text.splitlines() if line.split()[:1] == ["8"])
        return float(row[8])

    def round(self, parts):
        for loss in LOSSES:
            with impaired(self.build, f"drop={loss}%") as rig:
                if "rate" in parts:
                    for name, words, column, _ in RATES:
                        got = self.attempt(f"{name} at {loss} %",
                                           lambda: self.bandwidth(rig, words, column))
                        self.note(name, loss, got)
                if "latency" in parts:
                    self.note("latency", loss, self.attempt(f"latency at {loss} %",
                                                            lambda: self.latency(rig, loss)))
        if "reorder" in parts:
            self.shares("reorder", lambda: impaired(self.build, "reorder=1%,overtaken=32"),
                        [(name, words, column, ()) for name, words, column, _ in RATES])
        if "veth" in parts:
            self.shares("veth", lambda: rigs.veth(self.build, 4200),
                        [(f"{name}, {qps} QP", words, column,
                          ("-q", str(qps), "-t", str(depth), "-n",
                           str(2 * self.seconds * rate // qps // depth * depth)))
                         for (name, words, column, _), rate in OVER_VETH
                         for qps, depth in ((1, 100), (512, 16))])

    def shares(self, part, make, rows):
        with make() as rig:
            for name, words, column, more in rows:
                with Share(rig) as share:
                    got = self.attempt(f"{part}: {name}",
                                       lambda: self.bandwidth(rig, words, column, more))
                self.note(f"{part}: {name}", "figure", got)
                self.note(f"{part}: {name}", "again", share.value)

    # -- what was found ---------------------------------------------------------------------

    def median(self, row, column):
        values = [v for v in self.found.get((row, column), []) if v is not None]
        return statistics.median(values) if values else None

    def ratio(self, row, column, base_row=None):
        """The median of the rounds' ratios to the same row without loss."""
        pairs = zip(self.found.get((row, column), []), self.found.get((base_row or row, 0), []))
        ratios = [value / base for value, base in pairs if value is not None and base]
        return statistics.median(ratios) if ratios else None


def percent(ratio, places=None):
    if ratio is None:
        return "fails"
    share = ratio * 100
    return f"{share:.{places if places is not None else 0 if share >= 10 else 2}f} %"


def number(value):
    return "fails" if value is None else "too long" if value == float("inf") \
        else f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def print_table(run, parts):
    head = "| | no loss | " + " | ".join(f"{loss} %" for loss in LOSSES[1:]) + " |"
    if "rate" in parts or "latency" in parts:
        print(head + "\n" + "|---" * (len(LOSSES) + 1) + "|")
    if "rate" in parts:
        for name, _, _, unit in RATES:
            cells = [f"{percent(run.ratio(name, loss))} ({goal})"
                     for loss, goal in zip(LOSSES[1:], GOALS[name])]
            print(f"| {name} | {number(run.median(name, 0))} {unit} | {' | '.join(cells)} |")
    if "latency" in parts:
        cells = [number(run.median("latency", loss)) for loss in LOSSES]
        cells[1:] = [f"{cell} ({goal})" for cell, goal in zip(cells[1:], GOALS["latency"])]
        print(f"| 99.9 % latency of an 8-octet WRITE, us | {' | '.join(cells)} |")
    rows = list(dict.fromkeys(row for row, column in run.found if column == "again"))
    if rows:
        print("\n| | | of no loss | sent again |\n|---|---|---|---|")
    for row in rows:
        base = row.partition(": ")[2]
        kept = f"{percent(run.ratio(row, 'figure', base))} ({KEPT})" if row.startswith("reorder") \
            and (base, 0) in run.found else ""
        unit = next(unit for name, _, _, unit in RATES if base.startswith(name))
        print(f"| {row} | {number(run.median(row, 'figure'))} {unit} | {kept} | "
              f"{percent(run.median(row, 'again'), 3)} ({AGAIN}) |")


def as_json(run):
    rows = [{"row": row, "column": column,
             "rounds": [str(v) if v == float("inf") else v for v in values],
             "ratio": run.ratio(row, column, row.partition(": ")[2] or row)
             if column != "again" and row != "latency" else None}
            for (row, column), values in run.found.items()]
    return {"rows": rows, "failures": run.failures}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, help="5; --quick: 1")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("loss.sh creates network namespaces: run it as root")
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"--rounds must be 1 or more, not {options.rounds}")
    if not (options.build / "apps/uroced").exists():
        sys.exit(f"{options.build}/apps/uroced does not exist: build first")
    # A signal ends the run as an exception, so that everything is cleaned up.
    for which in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, lambda *_: sys.exit(130))
    rigs.remove_leftovers()
    parts = options.only or PARTS
    run = Run(options)
    rounds = options.rounds or (1 if options.quick else 5)
    for index in range(rounds):
        begun = time.monotonic()
        run.round(parts)
        print(f"round {index + 1} of {rounds}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    if options.json:
        print(json.dumps(as_json(run)))
    else:
        print_table(run, parts)
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
