#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""A test whose assertion would need libgit2 fails, and says which assertions to use. usage: differences_test.py DIFFERS"""

import subprocess
import sys
import unittest


class Differences(unittest.TestCase):
    def test_an_assertion_that_needs_libgit2(self):
        done = subprocess.run([DIFFERS], capture_output=True, text=True, timeout=30, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("use the assertions of criterion/criterion.h", done.stderr)

    def test_libgit2_is_not_loaded(self):
        said = subprocess.run(["ldd", DIFFERS], capture_output=True, text=True, timeout=30, check=True).stdout
        self.assertNotIn("libssh2", said)  # libgit2 brings it


if __name__ == "__main__":
    DIFFERS = sys.argv.pop(1)
    unittest.main()
