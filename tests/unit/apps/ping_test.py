#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce ping: what it says of an engine, of none, and of one that ends meanwhile."""

import json
import re
import subprocess
import unittest

from engine_rig import ENOUGH, UROCE, EngineCase

TIMES = ("min_us", "p50_us", "p99_us", "max_us")


class Ping(EngineCase):
    def test_lines(self):
        self.start()
        end = self.uroce("ping", "--count", "3", "--interval", "1", "--size", "4097")
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        first, *rounds, last = end.stdout.splitlines()
        self.assertRegex(first, rf"^uroce0 \(.*10\.7\.0\.1.*\), .* at {re.escape(self.socket)}, "
                                r"answers in [0-9.]+ us$")
        self.assertEqual([re.sub(r": [0-9.]+ us$", "", line) for line in rounds],
                         [f"4097 octets written, round {i}" for i in (1, 2, 3)])
        self.assertRegex(last, r"^3 round trips: min [0-9.]+, median [0-9.]+, p99 [0-9.]+, max [0-9.]+ us$")

    def test_json(self):
        self.start()
        end = self.uroce("ping", "--json", "--count", "100", "--interval", "0", "--size", "64")
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        said = json.loads(end.stdout)
        self.assertEqual({name: said[name] for name in ("device", "socket", "size", "count")},
                         {"device": "uroce0", "socket": self.socket, "size": 64, "count": 100})
        times = [said[name] for name in TIMES]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)
        self.assertGreater(said["control_round_trip_us"], 0)

    def test_no_engine(self):
        end = self.uroce("ping", "--json")
        self.assertEqual((end.returncode, end.stdout), (1, ""))
        self.assertRegex(end.stderr, rf"^uroce ping: .*{re.escape(self.socket)}.*\n$")

    def test_the_engine_ends_meanwhile(self):
        engine = self.start()
        ping = subprocess.Popen([UROCE, "ping", "--count", "1000000", "--interval", "1"], env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, ping)
        while "round 2" not in ping.stdout.readline():
            pass
        engine.kill()
        said = ping.communicate(timeout=ENOUGH)[1]
        self.assertEqual((ping.returncode, said.count("\n")), (1, 1), said)
        self.assertTrue(said.startswith("uroce ping: "), said)


if __name__ == "__main__":
    unittest.main()
