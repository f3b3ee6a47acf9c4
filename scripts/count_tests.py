#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the tests of a log: meson's testlog.json, or the output of a table of cases.

    count_tests.py LOG

Prints "FAILED: NAME: OUTPUT" for each failed test, "SKIPPED: NAME: REASON" for each skipped one,
then 'N passed, N failed, N skipped'. Each test of a Criterion program counts; any other program
counts once. A program that skips a part of its work prints "[SKIP] PART: REASON". In CI (CI=true)
only tests named in scripts/may_skip.txt may be skipped; any other skipped test fails.
"""

import fnmatch
import json
import os
import pathlib
import re
import sys

MAY_SKIP = pathlib.Path(__file__).with_name("may_skip.txt")
SYNTHESIS = re.compile(
    r"Synthesis: Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)")
FAILED = re.compile(r"^\[FAIL\] *(\S.*)", re.MULTILINE)
SAID = re.compile(r"^\[----\] *(\S.*)|(\w+Sanitizer: .*|runtime error: .*)", re.MULTILINE)
# Criterion reports a message from a process that is not its own, and goes on.
STRANGER = re.compile(r"^\[ERR *\] Received message identified by a PID '\d+'", re.MULTILINE)
SKIPPED = re.compile(r"^\[SKIP\] *(\S.*)", re.MULTILINE)
ROW = re.compile(r"^(FAIL|skip) +(\S.*)", re.MULTILINE)
NUMBERS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")


class Count:
    """Counts, and a line for each test that did not pass."""

    def __init__(self, may_skip=None):
        self.passed = 0
        self.failures = []
        self.skips = []
        self.may_skip = may_skip  # None: any test may be skipped

    def fail(self, line, times=1):
        self.failures += [line] + [None] * (times - 1)

    def skip(self, line):
        if self.may_skip is None or any(fnmatch.fnmatchcase(line, p) for p in self.may_skip):
            self.skips.append(line)
        else:
            self.fail(f"{line} (may not be skipped here)")

    def lines(self):
        yield from (f"FAILED: {line}" for line in self.failures if line is not None)
        yield from (f"SKIPPED: {line}" for line in self.skips)
        yield f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped"

    def program(self, name, result, text):
        """Counts one program of meson's log."""
        synthesis = [[int(n) for n in row] for row in SYNTHESIS.findall(text)]
        ran = sum(row[0] for row in synthesis)
        went_well = sum(row[1] for row in synthesis)
        skipped = SKIPPED.findall(text)
        for part in skipped:
            self.skip(f"{name}: {part}")
        if STRANGER.search(text) and result == "OK":
            self.fail(f"{name}: an assertion failed in a process that a test made")
        if result == "SKIP":
            if not skipped:
                self.skip(f"{name}: {last_line(text)}")
        elif result not in ("OK", "EXPECTEDFAIL"):
            self.passed += went_well
            said = " ".join([*FAILED.findall(text), *map("".join, SAID.findall(text))])[:500]
            self.fail(f"{name} ({result}) {said}".rstrip(), max(ran - went_well, 1))
        elif synthesis and not ran and not skipped:
            self.fail(f"{name}: no test of it ran")
        else:
            self.passed += ran if synthesis else 1

    def meson(self, text):
        for line in text.splitlines():
            test = json.loads(line)
            said = test.get("stdout", "") + test.get("stderr", "")
            self.program(test["name"], test["result"], re.sub(r"\x1b\[[0-9;]*m", "", said))

    def table(self, name, text):
        """Counts a table of cases: rows that begin with FAIL or skip give the reason, the totals
        are last."""
        numbers = NUMBERS.match(last_line(text))
        if not numbers:
            self.fail(f"{name}: it did not come to its end")
            return
        passed, failed, skipped = (int(n or 0) for n in numbers.groups())
        rows = ROW.findall(text)
        self.passed += passed
        for verdict, row in rows:
            (self.fail if verdict == "FAIL" else self.skip)(row)
        for verdict, wanted in (("FAIL", failed), ("skip", skipped)):
            told = sum(row[0] == verdict for row in rows)
            if told != wanted:
                self.fail(f"{name}: it says {wanted} times {verdict} and tells of {told}")


def last_line(text):
    return ([line for line in text.splitlines() if line.strip()] or ["it does not say why"])[-1]


def patterns(path):
    """Each line is a shell pattern; the reason follows a tab."""
    lines = [line.partition("\t")[0].rstrip() for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def main(log):
    count = Count(patterns(MAY_SKIP) if os.environ.get("CI") == "true" else None)
    text = log.read_text(errors="replace")
    if log.suffix == ".json":
        count.meson(text)
    else:
        count.table(log.stem, text)
    print("\n".join(count.lines()))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
