#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce top against an engine with a busy program: once, in a pipe, and on a terminal."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from engine_rig import ENOUGH, UROCE, EngineCase, Terminal, until

NEW_PAGE = "\x1b[H\x1b[2J"
RECEIVING = ("45", "47", "207", "212")  # recvfrom() and recvmsg(), as x86-64 and arm64 number them
OWN_PAGE, OLD_PAGE = "\x1b[?1049h", "\x1b[?1049l"


class Top(EngineCase):
    def setUp(self):
        super().setUp()
        self.engine = self.start()

    def busy(self):
        """A program with two queue pairs at work."""
        program = self.ping_without_pause()
        until(lambda: [q["state"] for q in json.loads(self.uroce("stat", "--json", "--qps").stdout)]
              == ["RTS", "RTS"], "queue pairs")
        return program

    def ping_without_pause(self):
        program = subprocess.Popen([UROCE, "ping", "--count", "1000000000", "--interval", "0"],
                                   env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, program)
        return program

    def once(self, *words):
        end = self.uroce("top", "--once", "--json", "--interval", "0.2", *words)
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        return json.loads(end.stdout)

    def test_nobody(self):
        said = self.once()
        self.assertEqual((said["programs"], said["peers"], said["queue_pairs"]), ([], [], []))
        self.assertEqual(said["device"], "uroce0")
        self.assertGreaterEqual(said["seconds"], 0.2)

    def test_once(self):
        program = self.busy()
        said = until(lambda: (page := self.once())["sends_per_second"] > 0 and
                     page["busy_polls_percent"] > 0 and page, "packets")
        (one,), (peer,) = said["programs"], said["peers"]
        self.assertEqual((one["pid"], one["qps"], one["program"]), (program.pid, 2, "ping"))
        self.assertEqual((peer["peer"], peer["way"], peer["qps"]), ("10.7.0.1", "here", 2))
        pairs = said["queue_pairs"]
        self.assertEqual({q["pid"] for q in pairs}, {program.pid})
        for name in ("sends_per_second", "receives_per_second"):
            for table in ("programs", "peers", "queue_pairs"):
                self.assertAlmostEqual(sum(line[name] for line in said[table]), said[name],
                                       delta=said[name] / 1000, msg=f"{table} {name}")
        self.assertGreaterEqual(*(q["sends_per_second"] + q["receives_per_second"]
                                  for q in pairs))

    def test_lines(self):
        self.busy()
        said = self.once("--lines", "1")
        self.assertEqual([len(said[t]) for t in ("programs", "peers", "queue_pairs")], [1, 1, 1])

    def test_text(self):
        program = self.busy()
        end = self.uroce("top", "--once", "--interval", "0.2")
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        self.assertNotIn("\x1b", end.stdout)
        summary, programs, peers, pairs = end.stdout.strip().split("\n\n")
        self.assertEqual(len(summary.splitlines()), 3)
        self.assertRegex(summary, r"^uroce0 \(.*10\.7\.0\.1\).*: 1 programs, 2 queue pairs; ")
        self.assertRegex(programs.splitlines()[1], rf"^ +{program.pid} .* [\d.]+ +[\d.]+  ping$")
        self.assertRegex(peers.splitlines()[1], r"^10\.7\.0\.1 +here +2 +[\d.]+ +[\d.]+$")
        self.assertEqual(len(pairs.splitlines()), 3)
        for line in pairs.splitlines()[1:]:
            self.assertRegex(line, rf"^0x[0-9a-f]+ +RC +RTS +10\.7\.0\.1 .* {program.pid} ping$")

    def test_pipe(self):
        """Page after page, until the engine ends."""
        top = subprocess.Popen([UROCE, "top", "--interval", "0.1"], env=self.environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, top)
        pages = 0
        for line in top.stdout:
            self.assertNotIn("\x1b", line)
            pages += line.startswith("uroce0 ")
            if pages == 3:
                break
        self.engine.kill()
        said = top.communicate(timeout=ENOUGH)[1]
        self.assertEqual(top.returncode, 1)
        self.assertRegex(said, rf"^uroce top: {self.socket}: .+\n$")

    def terminal(self, *words):
        terminal = Terminal([UROCE, "top", "--interval", "0.1", *words],
                            self.environment | {"TERM": "xterm"})
        terminal.read_until(OWN_PAGE)
        terminal.await_raw()
        return terminal

    def test_terminal(self):
        """A page of its own; q and signals leave it."""
        program = self.busy()
        for end in ("q", "xq", signal.SIGINT, signal.SIGTERM):
            terminal = self.terminal()
            for _ in range(3):
                page = terminal.read_until(NEW_PAGE)
            self.assertIn(f" {program.pid} ping\r\n", page)
            if isinstance(end, str):
                terminal.write(end)
            else:
                os.kill(terminal.pid, end)
            terminal.read_until(OLD_PAGE)
            self.assertEqual(terminal.status(), 0, end)

    def await_receiving(self, pid):
        """Until the process waits for an answer."""
        stop = time.monotonic() + ENOUGH
        path = pathlib.Path(f"/proc/{pid}/syscall")
        while path.read_text().split()[0] not in RECEIVING:
            self.assertLess(time.monotonic(), stop, "no question to the engine")
            time.sleep(0.001)

    def test_a_signal_while_the_engine_is_asked(self):
        for end in (signal.SIGINT, signal.SIGTERM):
            terminal = self.terminal()
            os.kill(self.engine.pid, signal.SIGSTOP)
            try:
                self.await_receiving(terminal.pid)
                os.kill(terminal.pid, end)
            finally:
                os.kill(self.engine.pid, signal.SIGCONT)
            terminal.read_until(OLD_PAGE)
            self.assertEqual(terminal.status(), 0, end)

    def test_terminal_when_the_engine_ends(self):
        """The page is left before the message is printed, so that it stays readable."""
        terminal = self.terminal()
        self.engine.kill()
        terminal.read_until(OLD_PAGE)
        self.assertTrue(re.match(r"uroce top: .*\r\n", terminal.read_until("\n")))
        self.assertEqual(terminal.status(), 1)


if __name__ == "__main__":
    unittest.main()
