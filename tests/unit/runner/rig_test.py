#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What tests/end_to_end/rig.py promises: nothing stays behind a killed test, and waits see what they wait for.

usage: rig_test.py BUILD
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

END_TO_END = pathlib.Path(__file__).resolve().parents[2] / "end_to_end"
sys.path.insert(0, str(END_TO_END))

import cases  # noqa: E402
import programs  # noqa: E402
from listening import listening  # noqa: E402
from rig import FAVOUR, PERFTEST, Failure, Process, Rig, wait_until  # noqa: E402

# Each program prints its pid; `far` has left the session of the process that the rig started.
KILLED = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from rig import Process, Rig
rig = Rig(pathlib.Path(sys.argv[2]))
near = Process(rig, "near", ["sh", "-c", "echo $$; exec sleep 1000"])
far = Process(rig, "far", ["setsid", "--wait", "sh", "-c", "echo $$; exec sleep 1000"])
for process in (near, far):
    process.expect(r"\\d+", 20)
print(rig.folder, near.output().strip(), far.output().strip(), flush=True)
sys.stdin.read()
"""


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Killed(unittest.TestCase):
    def test_programs_and_files_go(self):
        with subprocess.Popen([sys.executable, "-B", "-c", KILLED, str(END_TO_END), BUILD], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as test:
            folder, *pids = test.stdout.readline().split()
            self.assertEqual([runs(pid) for pid in pids], [True, True])
            test.kill()
        end = time.monotonic() + 20
        try:
            while (left := [pid for pid in pids if runs(pid)]) or os.path.exists(folder):
                self.assertLess(time.monotonic(), end, f"after 20 s there are still {left} and {folder}")
                time.sleep(0.02)
        finally:
            for pid in filter(runs, pids):
                os.kill(int(pid), signal.SIGKILL)


class Favoured(unittest.TestCase):
    def niceness(self, rig, **how):
        """Of a process and of its session, if this kernel divides a machine by sessions."""
        process = Process(rig, "sleeper", ["sleep", "1000"], **how)
        session = pathlib.Path(f"/proc/{process.pid}/autogroup")
        wait_until("sleep", 20, lambda: "sleep" in pathlib.Path(f"/proc/{process.pid}/comm").read_text())
        found = [str(os.getpriority(os.PRIO_PROCESS, process.pid))]
        return found + (session.read_text().split()[-1:] if session.exists() else [])

    @unittest.skipIf(os.geteuid() != 0, "only root may favour a process")
    def test_all_of_a_rig_or_one_process(self):
        for favoured_rig, how, wanted in ((False, {}, "0"), (False, {"favoured": True}, FAVOUR), (True, {}, FAVOUR)):
            with self.subTest(favoured_rig=favoured_rig, **how), Rig(pathlib.Path(BUILD), favoured_rig) as rig:
                self.assertEqual(set(self.niceness(rig, **how)), {wanted})


class AsTheyAre(unittest.TestCase):
    def test_each_program_of_perftest_runs_without_the_calm_clock(self):
        lines = dict(cases.PROGRAMS)
        every = {line.split()[0] for line in lines.values() if PERFTEST.match(line.split()[0])}
        self.assertEqual({lines[name].split()[0] for name in cases.AS_THEY_ARE}, every)


class Waits(unittest.TestCase):
    def test_what_was_seen_instead(self):
        with self.assertRaisesRegex(Failure, r"^a line did not come within 0 s \(another one\)$"):
            wait_until("a line", 0, lambda: False, seen=lambda: "another one")
        with self.assertRaisesRegex(Failure, r"^a line did not come within 0 s$"):
            wait_until("a line", 0, lambda: False)
        self.assertEqual(wait_until("a line", 0, lambda: 7, seen=self.fail), 7)


class Figures(unittest.TestCase):
    def test_a_deviation_that_is_no_number(self):
        """perftest's may be the root of a number slightly below zero."""
        row = " 8       150          74.29          99922.47      10774.29  \t       16310.34     \t-nan   \t\t96502.86"
        self.assertEqual(programs.figures("ib_write_lat", row), "8 B 10774.29 us typical")


class Listening(unittest.TestCase):
    def test_sockets_of_both_families(self):
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as one:
                one.bind((address, 0))
                port = one.getsockname()[1]
                self.assertFalse(listening(os.getpid(), port), "it is only bound")
                one.listen()
                self.assertTrue(listening(os.getpid(), port))
                with socket.create_connection((address, port)) as other:
                    self.assertFalse(listening(os.getpid(), other.getsockname()[1]), "it is only connected")
            self.assertFalse(listening(os.getpid(), port), "it is closed")

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_a_namespace_of_its_own(self):
        words = ["unshare", "--net", sys.executable, "-c", "import socket, sys\n"
                 "one = socket.create_server(('0.0.0.0', 0))\n"
                 "print(one.getsockname()[1], flush=True)\nsys.stdin.read()"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            port = int(program.stdout.readline())
            namespace = os.readlink("/proc/thread-self/ns/net")
            self.assertTrue(listening(program.pid, port))
            self.assertFalse(listening(os.getpid(), port))
            self.assertEqual(os.readlink("/proc/thread-self/ns/net"), namespace)
            program.stdin.close()
            program.wait(20)
            self.assertRaises(FileNotFoundError, listening, program.pid, port)


if __name__ == "__main__":
    BUILD = sys.argv.pop()
    unittest.main()
