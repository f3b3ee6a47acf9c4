#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce perf --cycles: the stages of both engines while a load runs, as tables and as JSON; --loss and --reorder."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from engine_rig import UROCE

ENOUGH = 200  # seconds; only bounds a hang
QUICK = ["perf", "--no-limits", "--seconds", "0.1", "--size", "8,4096"]
RATES = ["--operation", "write,read"]
STAGES = ["rx", "decode", "transport", "key", "place", "complete", "encode", "copy+sum", "tx", "post", "other"]
BUSY = ("rx", "decode", "transport", "encode", "tx")  # where a packet passes
ALWAYS = ("rx", "place", "post", "tx", "other")  # each round passes through these


class Cycles(unittest.TestCase):
    def perf(self, *words, of=RATES):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        end = subprocess.run([UROCE, *QUICK, *of, *words], timeout=ENOUGH, capture_output=True, text=True,
                             env=os.environ | {"XDG_RUNTIME_DIR": str(folder)})
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        return end.stdout

    def rates(self, placement):
        """Of one run: each stage that packets passed through took cycles, and no other stage did."""
        rates = json.loads(self.perf("--cycles", "--json", "--placement", placement))["rates"]
        for rate in rates:
            self.assertEqual(set(rate["cycles"]), {"asks", "answers"})
            for end in rate["cycles"].values():
                stages = end["stages"]
                self.assertEqual(list(stages), STAGES)
                for name, stage in stages.items():
                    self.assertEqual(stage["cycles"] > 0, stage["passes"] > 0, name)
                    self.assertGreaterEqual(stage["passes"] > 0, end["rounds"] > 0 and name in ALWAYS, name)
                self.assertEqual(end["packets"], stages["decode"]["passes"] + stages["encode"]["passes"])
        return rates

    def missing(self, rates):
        """A stage of which no round was measured. A loaded machine interrupts most rounds; these are counted apart."""
        for rate in rates:
            for name, end in rate["cycles"].items():
                for stage in BUSY:
                    if end["stages"][stage]["passes"] == 0:
                        return f"{rate['operation']} of {rate['size']} octets, {name}: {stage}"
            where = "answers" if rate["operation"] == "write" else "asks"
            end = rate["cycles"][where]
            if end["stages"]["place"]["passes"] == end["rounds"]:
                return f"{rate['operation']} of {rate['size']} octets: what arrives is placed"
        return None

    def test_loss(self):
        """Lost packets are sent again, and no others."""
        rates = json.loads(self.perf("--json", "--loss", "0,5"))["rates"]
        self.assertEqual([rate["loss_percent"] for rate in rates], [0, 5] * 4)
        for rate in rates:
            self.assertGreater(rate["messages"], 0)
            if rate["loss_percent"] > 0:
                self.assertGreater(rate["sent_again"], 0.01)
        trips = json.loads(self.perf("--json", "--latency", "--loss", "0,1", of=[]))["half_round_trips"]
        self.assertEqual([trip["loss_percent"] for trip in trips], [0, 0, 1, 1])
        self.assertRegex(self.perf("--loss", "1"), r"\n +1 %  write +8 ")

    def test_reordering(self):
        rates = json.loads(self.perf("--json", "--reorder", "0,1"))["rates"]
        self.assertEqual([rate["loss_percent"] for rate in rates], [0] * 8)
        self.assertEqual([rate["reordered_percent"] for rate in rates], [0, 1] * 4)
        self.assertRegex(self.perf("--loss", "0,1", "--reorder", "2"), r"\n +1 % +2 %  write +8 ")

    def expect_measured(self, placement):
        stop = time.monotonic() + ENOUGH
        while missing := self.missing(self.rates(placement)):
            self.assertLess(time.monotonic(), stop, missing)

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
