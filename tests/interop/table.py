# SPDX-License-Identifier: BSD-3-Clause
"""A table of cases: runs them and prints a line for each."""

import subprocess
import time

import rig as rigs


class Table:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def fail(self, name, failure):
        self.failed += 1
        print(f"FAIL {name}: {failure}", flush=True)

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skip {name}: {reason}", flush=True)

    def run(self, name, function):
        """False: the case failed."""
        start = time.monotonic()
        try:
            remark = function()
        except rigs.Skipped as reason:
            self.skip(name, reason)
            return True
        except (rigs.Failure, subprocess.TimeoutExpired) as failure:
            self.fail(name, failure)
            return False
        self.passed += 1
        print(f"ok   {name} ({time.monotonic() - start:.1f} s){': ' if remark else ''}{remark or ''}",
              flush=True)
        return True

    def end(self):
        """The exit status of the run."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed or not self.passed else 0
