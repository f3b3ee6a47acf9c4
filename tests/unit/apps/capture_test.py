#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce capture: frames of the port and of one host open in tshark as RoCE, and what is lost is counted."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import unittest

from engine_rig import ENOUGH, MEMIF, UROCE, EngineCase, until


@unittest.skipUnless(shutil.which("tshark"), "no tshark")
class Capture(EngineCase):
    def setUp(self):
        super().setUp()
        self.file = str(self.folder / "frames.pcapng")

    def read(self, *fields, condition="infiniband"):
        """These fields of the frames in the file that are RoCE, a list each."""
        options = [word for field in fields for word in ("-e", field)]
        end = subprocess.run(["tshark", "-n", "-r", self.file, "-Y", condition, "-T", "fields",
                              *options], env=self.environment, timeout=ENOUGH,
                             capture_output=True, text=True)
        self.assertEqual(end.returncode, 0, end.stderr)
        return [line.split("\t") for line in end.stdout.splitlines()]

    def test_same_host(self):
        self.start()
        self.ping()
        until(lambda: json.loads(self.uroce("stat", "--json", "--qps").stdout), "queue pairs")
        end = self.uroce("capture", "--json", "--count", "50", self.file)
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        self.assertEqual(json.loads(end.stdout), {"frames": 50, "lost": 0})
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        frames = self.read("frame.interface_name", "infiniband.bth.opcode", "ip.src", "ip.dst")
        self.assertEqual(len(frames), 50)
        self.assertEqual({(name, source, to) for name, _, source, to in frames},
                         {("same host", "10.7.0.1", "10.7.0.1")})
        self.assertEqual({int(opcode, 0) for _, opcode, *_ in frames}, {0x0a, 0x11},
                         "RDMA WRITE Only and Acknowledge")
        times = [float(t) for t, in self.read("frame.time_epoch")]
        self.assertEqual(times, sorted(times))

    def test_snap_and_end_by_signal(self):
        self.start()
        self.ping()
        capture = subprocess.Popen([UROCE, "capture", "--snap", "64", self.file],
                                   env=self.environment, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, capture)
        until(lambda: os.path.exists(self.file) and os.stat(self.file).st_size > 4096, "frames")
        capture.send_signal(signal.SIGINT)
        said = capture.communicate(timeout=ENOUGH)[1]
        self.assertEqual(capture.returncode, 0)
        frames = int(re.fullmatch(r"uroce capture: (\d+) frames captured, 0 lost\n", said)[1])
        lengths = self.read("frame.cap_len", "frame.len", condition="frame")
        self.assertEqual(len(lengths), frames)
        self.assertLessEqual(max(int(kept) for kept, _ in lengths), 64)
        self.assertGreater(max(int(whole) for _, whole in lengths), 64)

    def test_port(self):
        """Two engines with a memif between them: both directions, and address resolution."""
        self.start("--port", "net_memif0", "--mtu", "4200",
                   eal=[MEMIF.format("server", self.folder)])
        peer = self.start_peer()
        capture = subprocess.Popen([UROCE, "capture", self.file], env=self.environment,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, capture)
        until(lambda: os.path.exists(self.file) and os.stat(self.file).st_size, "the capture")
        self.assertIn("200 iters", self.pingpong(peer, 18599))
        capture.send_signal(signal.SIGTERM)
        self.assertRegex(capture.communicate(timeout=ENOUGH)[1], " 0 lost")
        frames = self.read("frame.interface_name", "frame.packet_flags_direction", "ip.src")
        self.assertEqual({(name, int(way, 0), source) for name, way, source in frames},
                         {("net_memif0", 1, "10.7.0.2"), ("net_memif0", 2, "10.7.0.1")})
        self.assertGreater(len(frames), 800)
        self.assertGreaterEqual(len(self.read("frame.number", condition="arp")), 2)

    def test_trace(self):
        """The WRITEs of one queue pair, and the acknowledgements that it gets, in the order of PSNs."""
        self.start()
        self.ping()
        pair = until(lambda: [q for q in json.loads(self.uroce("stat", "--json", "--qps").stdout)
                              if q["state"] == "RTS"], "a pair")[0]
        end = self.uroce("trace", "--count", "20", hex(pair["qpn"]))
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        lines = [re.fullmatch(r" *(\d+\.\d{6}) ([<>]) (RC [A-Z ]+?) +psn +(\d+) (.*)", line).groups()
                 for line in end.stdout.splitlines()]
        self.assertEqual(len(lines), 20)
        self.assertEqual(float(lines[0][0]), 0)
        self.assertLessEqual({name for _, _, name, _, _ in lines}, {"RC WRITE ONLY", "RC ACK"})
        for way in "<>":
            numbers = [int(psn) for _, to, name, psn, _ in lines if to == way and "WRITE" in name]
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers)))
                             if numbers else [])
        end = self.uroce("trace", hex(pair["qpn"] ^ 0xfff0))
        self.assertEqual(end.returncode, 1)
        self.assertIn("no queue pair has this number", end.stderr)

    def test_ends_with_the_engine(self):
        engine = self.start()
        capture = subprocess.Popen([UROCE, "capture", self.file], env=self.environment,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, capture)
        until(lambda: os.path.exists(self.file) and os.stat(self.file).st_size, "the capture")
        engine.kill()
        self.assertIn("the engine has ended", capture.communicate(timeout=ENOUGH)[1])
        self.assertEqual(self.read("frame.number", condition="frame"), [])

    def test_one_at_a_time(self):
        self.start()
        capture = subprocess.Popen([UROCE, "capture", self.file], env=self.environment,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, capture)
        until(lambda: os.path.exists(self.file) and os.stat(self.file).st_size, "the capture")
        end = self.uroce("capture", str(self.folder / "other"))
        self.assertEqual((end.returncode, end.stderr),
                         (1, f"uroce capture: process {capture.pid} is already capturing\n"))
        self.assertFalse((self.folder / "other").exists())

    def test_a_reader_that_does_not_read(self):
        """--seconds ends although the pipe is full."""
        self.start()
        reader, writer = os.pipe2(os.O_NONBLOCK)
        for end in (reader, writer):
            self.addCleanup(os.close, end)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))
        os.set_blocking(writer, True)
        end = subprocess.run([UROCE, "capture", "--seconds", "0.1", "-"], env=self.environment, stdout=writer,
                             stderr=subprocess.PIPE, text=True, timeout=ENOUGH)
        self.assertEqual((end.returncode, end.stderr), (1, "uroce capture: -: its reader does not read\n"))

    def capture_seconds(self):
        """How many frames half a second has. The file has as many."""
        end = self.uroce("capture", "--seconds", "0.5", self.file)
        self.assertEqual(end.returncode, 0, end.stderr)
        frames = int(re.fullmatch(r"uroce capture: (\d+) frames captured, \d+ lost\n", end.stderr)[1])
        self.assertEqual(len(self.read("frame.number", condition="frame")), frames)
        return frames

    def test_seconds(self):
        self.start()
        self.ping()
        until(self.capture_seconds, "frames")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        self.start()
        self.ping()
        end = self.uroce("capture", "--count", "100000", "/dev/full")
        self.assertEqual(end.returncode, 1)
        self.assertEqual(end.stderr, "uroce capture: /dev/full: No space left on device\n")


if __name__ == "__main__":
    unittest.main()
