#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce doctor on this very machine, with and without an engine."""

import json
import os
import pathlib
import re
import signal
import unittest

from engine_rig import EngineCase, until

RESULTS = ("ok", "slow", "missing")
LINE = re.compile(r"^(ok|slow|missing) +([a-z_0-9-]+) +(.+)$")
SUM = re.compile(r"^(\d+) ok, (\d+) slow, (\d+) missing$")


class Doctor(EngineCase):
    def json(self, *words):
        """The findings by the names of their checks; status and sums are checked."""
        end = self.uroce("doctor", "--json", *words)
        self.assertEqual(end.stderr, "")
        said = json.loads(end.stdout)
        found = {c["check"]: c for c in said["checks"]}
        self.assertEqual(len(found), len(said["checks"]))
        for name, c in found.items():
            self.assertIn(c["result"], RESULTS, name)
            self.assertTrue(c["text"], name)
            self.assertEqual(bool(c["mend"]), c["result"] != "ok", c)
        for result in ("slow", "missing"):
            self.assertEqual(said[result],
                             sum(c["result"] == result for c in found.values()))
        self.assertEqual(end.returncode, 1 if said["missing"] else 0)
        return found

    def test_without_a_port(self):
        found = self.json()
        for name in ("hugepages", "iommu", "cpu", "governor", "c-states", "isolcpus", "nohz_full",
                     "udp-4791", "tun", "ptrace", "engine"):
            self.assertIn(name, found)
        for name in ("driver", "group", "link", "mtu", "privileges"):
            self.assertNotIn(name, found)
        self.assertEqual(found["engine"]["text"], f"none runs at {self.socket}")

    def test_text(self):
        """One line each, the same as in JSON; checks that pass only with --all."""
        wanted = self.json("--port", "lo")
        for words, results in ((["--all"], RESULTS), ([], RESULTS[1:])):
            end = self.uroce("doctor", "--port", "lo", *words)
            *lines, last = end.stdout.splitlines()
            said = {name: (result, text) for result, name, text in
                    (LINE.match(line).groups() for line in lines)}
            self.assertEqual(len(said), len(lines))
            self.assertEqual(said, {
                name: (c["result"], c["text"] + (c["mend"] and f"; to fix it: {c['mend']}"))
                for name, c in wanted.items() if c["result"] in results})
            counts = [int(n) for n in SUM.match(last).groups()]
            self.assertEqual(counts, [sum(c["result"] == r for c in wanted.values())
                                      for r in RESULTS])

    def test_interface(self):
        found = self.json("--port", "lo")
        self.assertIn("lo is", found["link"]["text"])
        mtu = pathlib.Path("/sys/class/net/lo/mtu").read_text().strip()
        self.assertTrue(found["mtu"]["text"].startswith(mtu), found["mtu"])
        self.assertEqual(found["privileges"]["result"], "ok" if os.geteuid() == 0 else "missing")

    def test_every_device_of_this_machine(self):
        for device in pathlib.Path("/sys/bus/pci/devices").glob("*"):
            self.assertIn("driver", self.json("--port", device.name), device.name)

    def test_engine(self):
        engine = self.start()
        found = self.json()["engine"]
        self.assertEqual(found["result"], "ok")
        self.assertRegex(found["text"], rf"^uroce0 \(.*10\.7\.0\.1\).* at {self.socket}, "
                         rf"process {engine.pid}$")
        engine.kill()
        engine.wait()
        self.assertIn("a dead engine left", self.json()["engine"]["text"])

    @staticmethod
    def states(process):
        """States of all threads, as in proc(5): each thread stops when it runs next."""
        stats = pathlib.Path(f"/proc/{process.pid}/task").glob("*/stat")
        return {stat.read_text().rpartition(")")[2].split()[0] for stat in stats}

    def test_engine_that_hangs(self):
        """Its main thread and the control path stand still; the kernel still accepts connections."""
        engine = self.start()
        engine.send_signal(signal.SIGSTOP)
        self.addCleanup(engine.send_signal, signal.SIGCONT)
        until(lambda: self.states(engine) == {"T"}, "that all of its threads stand still")
        found = self.json()["engine"]
        self.assertEqual(found["result"], "missing")
        self.assertIn("did not answer", found["text"])
        self.assertIn(str(engine.pid), found["mend"])


if __name__ == "__main__":
    unittest.main()
