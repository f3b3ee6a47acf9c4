#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Wrong words behind ./check and ./try: one line, before anything is installed, built or run."""

import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Wrong(unittest.TestCase):
    def test_what_there_is_not(self):
        for words, says in (
                (["./check", "nonsense"], "check: there is no step 'nonsense': must be of format release sim "),
                (["./check", "format", "-x"], "check: there is no step '-x': must be of format release sim "),
                (["./check", "--long", "nonsense"], "check --long: there is no part 'nonsense': must be of packages "),
                (["./check", "--long", "dist", "x"], "check --long: there is no part 'x': must be of packages "),
                (["./try", "--nonsense"], "try: '--nonsense': it takes no options")):
            end = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            self.assertEqual((end.returncode, end.stdout), (2, ""), words)
            self.assertTrue(end.stderr.startswith(says), end.stderr)
            self.assertEqual(end.stderr.count("\n"), 1, end.stderr)


if __name__ == "__main__":
    unittest.main()
