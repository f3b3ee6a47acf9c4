#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""
What takes too long for every change: ./check --long [PART...]

Runs the parts one after the other, each within its time, and goes on after a failure. On a terminal a
line says what runs, for how long, and what it printed last. The whole output of each part is in
build/long/PART.log. In the end come the parts that failed or were skipped and why, and a line
'N passed, N failed, N skipped'. A part whose last line has such numbers counts with them, another one
counts once. The exit status is 0 if nothing failed.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import count_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build/long"
BUILD = str(ROOT / "build")
MINUTE = 60
SKIPPED = 77
NUMBERS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)

# Name, the most that it may take, what it shows, and the command; packages of `long` in packages.txt.
PARTS = {
    "packages": (40 * MINUTE, "Debian packages, linted, and installed into a fresh Debian 12",
                 ["tests/package/run.sh"]),
    "containers": (10 * MINUTE, "an engine and programs in containers of plain namespaces",
                   ["tests/container/run.py", BUILD]),
    "browser": (10 * MINUTE, "the report of uroce perf in a browser",
                ["meson", "test", "-C", BUILD, "--no-rebuild", "--print-errorlogs", "apps/perf_look"]),
    "dist": (60 * MINUTE, "the archive of a release, built and tested by itself",
             ["meson", "dist", "-C", BUILD, "--allow-dirty"]),
    "end_to_end": (90 * MINUTE, "unmodified programs on every kind of port, the whole table",
                   ["tests/end_to_end/run.py"]),
    "interop": (90 * MINUTE, "Linux's rdma_rxe in a guest, the whole table", ["tests/interop/run.py"]),
    "nics": (120 * MINUTE, "the network cards that QEMU emulates", ["tests/nic/run.py"]),
    "campaign": (60 * MINUTE, "the transport in simulated bad networks: 20,000 seeds",
                 ["build/apps/uroce", "sim", "--seeds", "20000", "--messages", "200"]),
    "fuzz": (60 * MINUTE, "each fuzz target for two minutes", ["tests/fuzz/run.sh", "120"]),
    "proofs": (60 * MINUTE, "small functions for all inputs", ["tests/proof/run.sh"]),
    "soak": (80 * MINUTE, "thousands of queue pairs for an hour, while programs and engines die",
             ["tests/soak/run.py", "--hours", "1"]),
    "coverage": (120 * MINUTE, "which lines the tests run", ["scripts/coverage.py"]),
    "mutants": (12 * 60 * MINUTE, "whether a test notices each planted mistake",
                ["tests/mutate/run.py"]),
}


def last_line(log):
    text = log.read_bytes()[-4096:].decode(errors="replace")
    return ([line for line in text.splitlines() if line.strip()] or [""])[-1]


def progress(name, seconds, most, log):
    """Replaces the line before, on a terminal."""
    if sys.stdout.isatty():
        said = re.sub(r"[^ -~]", "", last_line(log))
        line = f"{name}: {seconds:.0f} s of {most} at most: {said}"
        print(f"\r\033[K{line[:shutil.get_terminal_size().columns - 1]}", end="", flush=True)


def end_of(process, name, most, log):
    """The exit status; None: its time was over, and it is ended with all that it started."""
    begun = time.monotonic()
    while True:
        try:
            return process.wait(1)
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - begun
        progress(name, seconds, most, log)
        if seconds > most:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return None


def count(name, status, most, text, total):
    """Adds a part to `total`; returns what is to be said of it."""
    numbers = NUMBERS.findall(text)
    if status == SKIPPED:
        total.skip(f"{name}: {count_tests.last_line(text)}")
        return "skipped"
    if numbers:
        before = len(total.failures)
        part = count_tests.Count()
        part.table(name, f"{text}\n{numbers[-1][0]} passed, {numbers[-1][1]} failed, "
                         f"{numbers[-1][2] or 0} skipped")
        total.passed += part.passed
        for line in part.failures:
            total.failures.append(line if line is None else f"{name}: {line}")
        for line in part.skips:
            total.skip(f"{name}: {line}")
        failed = len(total.failures) > before
    else:
        failed = False
        total.passed += status == 0
    if status is None:
        total.fail(f"{name}: not done in {most} s")
    elif status != 0 and not failed:
        total.fail(f"{name}: status {status}: {count_tests.last_line(text)}")
    return "FAILED" if failed or status != 0 else "ok"


def run(name, total):
    most, what, words = PARTS[name]
    log = LOGS / f"{name}.log"
    print(f"== {name}: {what} (at most {most // MINUTE} minutes; {log.relative_to(ROOT)})", flush=True)
    begun = time.monotonic()
    with open(log, "wb") as out:
        process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = end_of(process, name, most, log)
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
    text = log.read_text(errors="replace")
    verdict = count(name, status, most, text, total)
    clear = "\r\033[K" if sys.stdout.isatty() else ""
    print(f"{clear}{name}: {verdict} in {time.monotonic() - begun:.0f} s", flush=True)


def main(names):
    only_look = names[:1] == ["--known"]  # for ./check, before it installs and builds anything
    names = names[only_look:]
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"check --long: there is no part '{unknown[0]}': must be of {' '.join(PARTS)}", file=sys.stderr)
        return 2
    if only_look:
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    total = count_tests.Count()
    for name in names or PARTS:
        run(name, total)
    print()
    print("\n".join(total.lines()))
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
