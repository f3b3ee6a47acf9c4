#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The limits of uroce perf: each rate stands beside what as many cores do without an engine."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from engine_rig import UROCE

ENOUGH = 200  # seconds; only bounds a hang
SIZE = 4096
QUICK = ["perf", "--seconds", "0.02", "--size", str(SIZE), "--operation", "write,atomic"]
TWO = "two_cores_messages_per_s"


class Limits(unittest.TestCase):
    def perf(self, *words):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        end = subprocess.run([UROCE, *QUICK, *words], timeout=ENOUGH, capture_output=True, text=True,
                             env=os.environ | {"XDG_RUNTIME_DIR": str(folder)})
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        return end.stdout

    def expect_beside(self, placement, field):
        """The ratios are to this limit, which it returns."""
        figures = json.loads(self.perf("--json", "--placement", placement))
        [limit] = figures["limits"]["messages"]
        write, atomic = sorted(figures["rates"], key=lambda rate: -rate["size"])
        self.assertEqual((limit["size"], write["size"], write["operation"]), (SIZE, SIZE, "write"))
        self.assertGreater(limit[field], 0)
        self.assertAlmostEqual(write["ratio_to_limit"] * limit[field] / write["messages_per_s"], 1, places=3)
        self.assertGreater(atomic["ratio_to_limit"], 0)  # 8 octets, which are always measured
        return limit

    def test_one_core(self):
        self.assertNotIn(TWO, self.expect_beside("one", "messages_per_s"))

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor")
    def test_program_on_another_core(self):
        self.assertNotIn(TWO, self.expect_beside("apart", "messages_per_s"))

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor")
    def test_two_cores(self):
        self.assertGreater(self.expect_beside("two", TWO)["messages_per_s"], 0)
        self.assertEqual(self.perf("--placement", "two").count("from one core to another"), 1)


if __name__ == "__main__":
    unittest.main()
