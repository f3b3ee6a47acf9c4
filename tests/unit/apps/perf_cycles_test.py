#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce perf --cycles: the stages of both engines while a load runs, as tables and as JSON."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from engine_rig import UROCE

ENOUGH = 200  # seconds; only bounds a hang
QUICK = ["perf", "--no-limits", "--seconds", "0.1", "--memory", "512", "--operation", "write,read",
         "--size", "8,4096"]
STAGES = ["rx", "decode", "transport", "key", "place", "complete", "encode", "copy+sum", "tx", "post", "other"]


class Cycles(unittest.TestCase):
    def perf(self, *words):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        end = subprocess.run([UROCE, *QUICK, *words], timeout=ENOUGH, capture_output=True, text=True,
                             env=os.environ | {"XDG_RUNTIME_DIR": str(folder)})
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        return end.stdout

    def expect_measured(self, placement):
        for rate in json.loads(self.perf("--cycles", "--json", "--placement", placement))["rates"]:
            self.assertEqual(set(rate["cycles"]), {"asks", "answers"})
            for end in rate["cycles"].values():
                self.assertEqual(list(end["stages"]), STAGES)
                self.assertGreater(end["packets"], 0)
                self.assertGreater(end["rounds"], 0)
                for stage in ("rx", "decode", "transport", "encode", "tx"):
                    self.assertGreater(end["stages"][stage]["cycles"], 0, stage)
            place = {name: end["stages"]["place"]["passes"] - end["rounds"]
                     for name, end in rate["cycles"].items()}
            where = "answers" if rate["operation"] == "write" else "asks"
            self.assertGreater(place[where], 0, "octets arrive there")

    def test_json(self):
        self.expect_measured("one")

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor")
    def test_engines_on_another_core(self):
        self.expect_measured("apart")

    def test_tables(self):
        head, *tables = self.perf("--cycles").split("\ncycles a packet: ")
        self.assertEqual(len(head.splitlines()), 1 + 4 + 0)
        self.assertEqual([table.splitlines()[0] for table in tables],
                         [f"{op}, {size} octets, 1 queue pairs" for op in ("write", "read")
                          for size in (8, 4096)])
        for table in tables:
            lines = table.splitlines()
            self.assertEqual([line.split()[0] for line in lines[2:13]], STAGES)
            self.assertEqual(lines[13].split()[0], "all")

    def test_only_where_it_is_asked_for(self):
        self.assertNotIn("cycles", self.perf())
        self.assertNotIn("cycles", json.loads(self.perf("--json"))["rates"][0])


if __name__ == "__main__":
    unittest.main()
