#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""A test whose .fini fails is reported as failed, and skipped tests are named. usage: verdict_test.py FAULTY"""

import subprocess
import sys
import unittest


def run(pattern):
    words = [FAULTY] if pattern is None else [FAULTY, "--filter", pattern]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)


class Verdict(unittest.TestCase):
    def fails(self, pattern, *said):
        done = run(pattern)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("Tested: 1 | Passing: 0 | Failing: 1 |", done.stderr)
        for text in said:
            self.assertIn(text, done.stderr)

    def test_good(self):
        done = run("good/*")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Tested: 3 | Passing: 3 | Failing: 0 | Crashing: 0", done.stderr)
        self.assertNotIn("[SKIP]", done.stderr)

    def test_body(self):
        self.fails("body/fails", "[FAIL] body::fails", "an expectation of the body")
        self.fails("body/crashes", "[FAIL] body::crashes")

    def test_assertions(self):
        """... say what Criterion's own say."""
        self.fails("assertions/*", "The expression (here[0]) == (there[0]) is false.", "50% of here",
                   "(here) == (there) is false: actual=`here` expected=`there`.", "none is null.",
                   "(here)[0..Size] == (there)[0..Size] is false.", "a failure",
                   "The expression here[0] == 't' is false.")
        said = run("assertions/*").stderr
        self.assertEqual(said.count("faulty.c:"), 7, said)
        self.assertNotIn("not said", said)
        self.assertNotIn("not reached", said)

    def test_each_assertion(self):
        """Each refuses what it must; cr_assert ends the test, and after cr_expect it goes on."""
        for suite, failures in (("ends", 1), ("goes_on", 2)):
            said = run(f"{suite}/*").stderr
            self.assertIn("Tested: 16 | Passing: 0 | Failing: 16 | Crashing: 0", said)
            self.assertEqual(said.count("faulty.c:"), 16 * failures, said)
            self.assertEqual(said.count("not reached"), 0, said)
        self.fails("refused/by_expectations", "one", "two", "three", "four")

    def test_fini(self):
        self.fails("fini/expects", "[FAIL] fini::expects: its .fini failed",
                   "an expectation of .fini")
        self.fails("fini/asserts", "[FAIL] fini::asserts: its .fini failed",
                   "an assertion of .fini")
        self.fails("of_suite/fails", "[FAIL] of_suite::fails: its .fini failed",
                   "an assertion of .fini")

    def test_fini_without_end(self):
        for how in ("leaves", "crashes"):
            self.fails(f"fini/{how}", f"[FAIL] fini::{how}: its .fini did not come to its end")
        self.fails("fini/hangs", "[FAIL] fini::hangs: Timed out")

    def test_skipped(self):
        done = run("skipped/*")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Tested: 0 | Passing: 0 | Failing: 0 | Crashing: 0", done.stderr)
        for name in ("in_body", "in_init"):
            self.assertIn(f"[SKIP] skipped::{name}: not here: the moon is new\n", done.stderr)
        self.assertNotIn("disabled", done.stderr)

    def test_all(self):
        done = run(None)
        self.assertIn("[SKIP] skipped::disabled: its source disables it\n", done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Tested: 45 | Passing: 3 | Failing: 42 | Crashing: 1", done.stderr)


if __name__ == "__main__":
    FAULTY = sys.argv.pop()
    unittest.main()
