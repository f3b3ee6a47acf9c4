#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The results of scripts/count_tests.py for logs of each kind. usage: count_test.py FAULTY"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import count_tests  # noqa: E402

SYNTHESIS = "[====] Synthesis: Tested: {} | Passing: {} | Failing: {} | Crashing: {} \n"


def criterion(*numbers, before=""):
    return before + SYNTHESIS.format(*numbers)


def row(result, text="", name="some/test"):
    return json.dumps({"name": name, "result": result, "stdout": text})


def meson(*rows, may_skip=None):
    count = count_tests.Count(may_skip)
    count.meson("\n".join(rows))
    return list(count.lines())


def table(text, may_skip=None):
    count = count_tests.Count(may_skip)
    count.table("tables", text)
    return list(count.lines())


class Programs(unittest.TestCase):
    def test_each_test_counts(self):
        self.assertEqual(meson(row("OK", criterion(7, 7, 0, 0)), row("OK", "no numbers\n")),
                         ["8 passed, 0 failed, 0 skipped"])

    def test_a_failure_says_why(self):
        text = criterion(7, 5, 2, 0, before="[----] a.c:3: Assertion Failed\n[FAIL] a::b: (0 s)\n")
        self.assertEqual(meson(row("FAIL", text)), [
            "FAILED: some/test (FAIL) a::b: (0 s) a.c:3: Assertion Failed",
            "5 passed, 2 failed, 0 skipped"])

    def test_a_bad_status_fails_whatever_the_numbers(self):
        self.assertEqual(meson(row("FAIL", criterion(3, 3, 0, 0)))[-1],
                         "3 passed, 1 failed, 0 skipped")
        for result in ("TIMEOUT", "ERROR", "UNEXPECTEDPASS", "INTERRUPT"):
            self.assertEqual(meson(row(result)), [f"FAILED: some/test ({result})",
                                                  "0 passed, 1 failed, 0 skipped"])

    def test_an_expected_failure_passes(self):
        self.assertEqual(meson(row("EXPECTEDFAIL", "no\n")), ["1 passed, 0 failed, 0 skipped"])

    def test_a_sanitizer_is_heard(self):
        self.assertIn("AddressSanitizer: heap-use-after-free",
                      meson(row("FAIL",
                                "==1==ERROR: AddressSanitizer: heap-use-after-free on\n"))[0])

    def test_a_skipped_program_does_not_pass(self):
        self.assertEqual(meson(row("SKIP", "needs root\n")), [
            "SKIPPED: some/test: needs root", "0 passed, 0 failed, 1 skipped"])
        self.assertEqual(meson(row("SKIP")), ["SKIPPED: some/test: it does not say why",
                                              "0 passed, 0 failed, 1 skipped"])

    def test_a_program_whose_tests_are_all_skipped_does_not_pass(self):
        text = criterion(0, 0, 0, 0, before="[SKIP] a::b: not root\n[SKIP] a::c: not root\n")
        self.assertEqual(meson(row("OK", text)), [
            "SKIPPED: some/test: a::b: not root", "SKIPPED: some/test: a::c: not root",
            "0 passed, 0 failed, 2 skipped"])

    def test_a_program_that_did_a_part(self):
        self.assertEqual(meson(row("OK", "[SKIP] the rest: no capabilities\n")), [
            "SKIPPED: some/test: the rest: no capabilities", "1 passed, 0 failed, 1 skipped"])
        self.assertEqual(meson(row("FAIL", criterion(2, 1, 1, 0, before="[SKIP] a::b: no\n")))[1:],
                         ["SKIPPED: some/test: a::b: no", "1 passed, 1 failed, 1 skipped"])

    def test_a_program_in_which_nothing_ran_fails(self):
        self.assertEqual(meson(row("OK", criterion(0, 0, 0, 0))), [
            "FAILED: some/test: no test of it ran", "0 passed, 1 failed, 0 skipped"])

    def test_an_assertion_in_a_process_that_a_test_made(self):
        text = "[ERR ] Received message identified by a PID '77' that is not a child process.\n"
        self.assertEqual(meson(row("OK", text + criterion(1, 1, 0, 0))), [
            "FAILED: some/test: an assertion failed in a process that a test made",
            "1 passed, 1 failed, 0 skipped"])

    def test_colours_do_not_matter(self):
        text = "\x1b[0;34m[SKIP]\x1b[0m a::b: not root\n" + criterion(1, 1, 0, 0)
        self.assertEqual(meson(row("OK", text))[-1], "1 passed, 0 failed, 1 skipped")


class Tables(unittest.TestCase):
    def test_rows(self):
        text = ("ok   one 1.0 s\nFAIL two: it broke\nskip three: no such device\n"
                "FAILURE is a word\n"
                "1 passed, 1 failed, 1 skipped\n")
        self.assertEqual(table(text), ["FAILED: two: it broke", "SKIPPED: three: no such device",
                                       "1 passed, 1 failed, 1 skipped"])
        self.assertEqual(table("ok   one\n1 passed, 0 failed\n"), ["1 passed, 0 failed, 0 skipped"])

    def test_no_end(self):
        for text in ("", "ok   one\n", "FAIL one\n", "1 passed, 0 failed\nTraceback\n"):
            self.assertEqual(table(text), ["FAILED: tables: it did not come to its end",
                                           "0 passed, 1 failed, 0 skipped"])

    def test_numbers_without_rows(self):
        self.assertEqual(table("1 passed, 2 failed, 1 skipped\n")[-1],
                         "1 passed, 2 failed, 0 skipped")


class Skips(unittest.TestCase):
    MAY = ["some/test: a::*: not root", "three: no such*"]

    def test_what_the_list_names(self):
        text = criterion(1, 1, 0, 0, before="[SKIP] a::b: not root\n[SKIP] a::b: another reason\n")
        self.assertEqual(meson(row("OK", text), may_skip=self.MAY), [
            "FAILED: some/test: a::b: another reason (may not be skipped here)",
            "SKIPPED: some/test: a::b: not root", "1 passed, 1 failed, 1 skipped"])
        self.assertEqual(meson(row("SKIP", "not root\n"), may_skip=self.MAY)[-1],
                         "0 passed, 1 failed, 0 skipped")
        self.assertEqual(table("skip three: no such device\n0 passed, 0 failed, 1 skipped\n",
                               may_skip=self.MAY)[-1], "0 passed, 0 failed, 1 skipped")

    def test_the_list(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# a comment\n\nsome/*: of it\twhy it may\n")
            file.flush()
            self.assertEqual(count_tests.patterns(pathlib.Path(file.name)), ["some/*: of it"])
        for line in count_tests.MAY_SKIP.read_text().splitlines():
            pattern, _, reason = line.partition("\t")
            self.assertTrue(line.startswith("#") or not line or (pattern and reason), line)


class RealCriterion(unittest.TestCase):
    """Its result for a program whose outcomes are known."""

    def count(self, ci, *options):
        done = subprocess.run([FAULTY, *options], capture_output=True, text=True, timeout=30,
                              check=False)
        result = "OK" if done.returncode == 0 else "FAIL"
        with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
            log.write(json.dumps({"name": "faulty", "result": result, "stdout": done.stdout,
                                  "stderr": done.stderr}) + "\n")
            log.flush()
            return subprocess.run([sys.executable, "-B", SCRIPTS / "count_tests.py", log.name],
                                  capture_output=True, text=True, check=True,
                                  env={**os.environ, "CI": ci}).stdout.splitlines()

    def test_all(self):
        self.assertEqual(self.count("")[-1], "3 passed, 42 failed, 3 skipped")

    def test_names(self):
        for suite, names, last in (("body", ("fails", "crashes"), "0 passed, 2 failed, 0 skipped"),
                                   ("fini", ("expects", "hangs"), "0 passed, 5 failed, 0 skipped")):
            lines = self.count("", "--filter", f"{suite}/*")
            self.assertEqual(lines[-1], last)
            for name in names:
                self.assertIn(f"{suite}::{name}", lines[0])

    def test_a_fini(self):
        lines = self.count("", "--filter", "fini/expects")
        self.assertEqual(lines[-1], "0 passed, 1 failed, 0 skipped")
        self.assertIn("faulty.c", lines[0])
        self.assertIn("an expectation of .fini", lines[0])

    def test_skips(self):
        self.assertEqual(self.count("", "--filter", "skipped/in_*")[-1],
                         "0 passed, 0 failed, 2 skipped")
        self.assertEqual(self.count("true", "--filter", "skipped/in_*")[-1],
                         "0 passed, 2 failed, 0 skipped")

    def test_no_test(self):
        self.assertEqual(self.count("", "--filter", "nothing/*")[-1],
                         "0 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    FAULTY = sys.argv.pop()
    unittest.main()
