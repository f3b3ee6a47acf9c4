#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce trace with packets that an engine keeps: begun and ended while packets pass, read as lines and in tshark."""

import os
import re
import shutil
import subprocess
import unittest

from engine_rig import ENOUGH, EngineCase, until


class Kept(EngineCase):
    def setUp(self):
        super().setUp()
        self.start()

    def trace(self, qpn, *words):
        end = self.uroce("trace", *words, qpn)
        self.assertEqual((end.returncode, end.stderr), (0, ""), words)
        return end.stdout.splitlines()

    def refused(self, qpn, *words):
        end = self.uroce("trace", *words, qpn)
        self.assertEqual((end.returncode, end.stdout), (1, ""), words)
        return end.stderr

    def pair(self):
        """A queue pair of a program that is busy."""
        self.program = self.ping()

        def working():
            said = self.uroce("stat", "--qps").stdout
            pairs = re.findall(r"^(0x\w+) +RC +RTS", said, re.MULTILINE)
            return pairs if len(pairs) == 2 else None

        return until(working, "two queue pairs")

    def test_story(self):
        first, second = self.pair()
        self.assertEqual(self.refused(first, "--last", "1"), "uroce trace: no queue pair is traced\n")
        self.assertEqual(self.refused("0x12", "--keep", "5"),
                         "uroce trace: no queue pair has the number 0x000012\n")
        self.assertEqual(self.trace(first, "--keep", "64"), [])
        self.assertEqual(self.refused(second, "--keep", "5"),
                         f"uroce trace: queue pair {first} is traced already; end that trace first\n")
        self.assertEqual(self.refused(second, "--end"),
                         f"uroce trace: {second}: the queue pair that is traced is {first}\n")
        until(lambda: len(self.trace(first, "--last", "64")) == 64, "64 packets")
        self.end(self.program)
        until(lambda: first not in self.uroce("stat", "--qps").stdout, "the end of the pair")
        lines = self.trace(first, "--last", "64")
        self.assertEqual(len(lines), 64)
        # packets that this queue pair sends are acknowledged to it, and the other way round
        said = {(way, re.match(r"\w+", what)[0]) for way, what in
                (re.match(r" +[\d.]+ ([<>]) (.*)", line).groups() for line in lines)}
        self.assertGreaterEqual(len(said), 2, said)
        times = [float(line.split()[0]) for line in lines]
        self.assertEqual((times[0], times), (0, sorted(times)))
        self.assertEqual(len(self.trace(first, "--last", "10")), 10)
        self.assertEqual(self.trace(first, "--end"), [])
        self.assertEqual(self.refused(first, "--end"), "uroce trace: no queue pair is traced\n")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_output_that_cannot_be_written(self):
        first, _ = self.pair()
        self.trace(first, "--keep", "32")
        until(lambda: len(self.trace(first, "--last", "32")) == 32, "32 packets")
        self.unwritten("trace", "--last", "32", first)
        self.unwritten("trace", "--count", "5", first)
        file = str(self.folder / "frames.pcapng")
        self.unwritten("capture", "--json", "--count", "5", file)

    @unittest.skipUnless(shutil.which("tshark"), "no tshark")
    def test_pcap(self):
        first, _ = self.pair()
        self.trace(first, "--keep", "32")
        until(lambda: len(self.trace(first, "--last", "32")) == 32, "32 packets")
        file = self.folder / "trace.pcapng"
        self.assertEqual(self.trace(first, "--last", "32", "--pcap", str(file)), [])
        end = subprocess.run(["tshark", "-n", "-r", file, "-Y", "infiniband", "-T", "fields", "-e",
                              "infiniband.bth.destqp"], env=self.environment, timeout=ENOUGH,
                             capture_output=True, text=True)
        self.assertEqual(end.returncode, 0, end.stderr)
        self.assertEqual(len(end.stdout.split()), 32)
        self.assertIn("No such file or directory",
                      self.refused(first, "--last", "1", "--pcap", "/nonexistent/file"))


if __name__ == "__main__":
    unittest.main()
