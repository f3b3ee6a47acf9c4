#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The server that executes programs in the guests of interop and nics, here without a guest."""
import os
import pathlib
import re
import resource
import sys
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "interop"))

import guest_server  # noqa: E402


class GuestServer(unittest.TestCase):
    def test_more_programs_than_descriptors(self):
        """The whole of tests/nic is some thousand programs in one guest."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        for i in range(100):
            number = guest_server.start(["echo", str(i)])
            self.assertEqual(guest_server.finish(number, 60), {"status": 0, "output": f"{i}\n"})
        self.assertEqual(guest_server.output(number)["output"], "99\n", "it stays")

    def test_output_of_a_program_that_runs(self):
        number = guest_server.start(["sh", "-c", "echo first; read line; echo last"])
        # its standard input is empty
        self.assertEqual(guest_server.finish(number, 60), {"status": 0, "output": "first\nlast\n"})

    def test_two_that_write_at_once(self):
        """As an engine's lcore does, which says what it cannot have, while the main thread says that it serves."""
        writer = "dd if=/dev/zero bs=1M count=20 status=none"
        number = guest_server.start(["sh", "-c", f"{writer} & {writer} >&2; wait"])
        self.assertEqual(guest_server.finish(number, 60)["status"], 0)
        self.assertEqual(len(guest_server.output(number)["output"]), 40 << 20, "nothing is overwritten")

    def test_environment(self):
        asked = {"start": ["sh", "-c", "echo $MORE $PATH"], "env": {"MORE": "more"}}
        number = guest_server.answer(asked)["number"]
        self.assertEqual(guest_server.finish(number, 60)["output"], f"more {os.environ['PATH']}\n", "beside the rest")

    def test_a_program_that_is_not_there(self):
        with self.assertRaises(OSError):
            guest_server.start(["/nonexistent/program"])

    def test_a_program_that_does_not_end(self):
        """A kernel may hold a program that was killed: the one who asks must get an answer."""
        number = guest_server.start(["sleep", "600"])
        try:
            with unittest.mock.patch.multiple(guest_server, ENDS_WITHIN=0.1), \
                    unittest.mock.patch.object(guest_server.os, "killpg"):
                reply = guest_server.finish(number, 0)
            self.assertEqual(reply["status"], "timeout")
            self.assertRegex(reply["output"], r"was killed and does not end; its threads: \w+ S ")
        finally:
            guest_server.finish(number, 0)

    def test_where_threads_stand(self):
        number = guest_server.start(["sleep", "600"])
        try:
            end = time.monotonic() + 60
            said = guest_server.answer({"threads": number})["output"]
            while not re.fullmatch(r"sleep S \w+", said):  # it may not sleep yet
                self.assertLess(time.monotonic(), end, said)
                time.sleep(0.01)
                said = guest_server.answer({"threads": number})["output"]
        finally:
            guest_server.finish(number, 0)

    def test_one_that_takes_too_long_is_killed(self):
        number = guest_server.start(["sleep", "600"])
        self.assertEqual(guest_server.finish(number, 0.1)["status"], "timeout")


if __name__ == "__main__":
    unittest.main()
