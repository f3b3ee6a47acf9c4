#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A guest of interop that stands still is replaced once in a run, and nothing else is tried again."""
import pathlib
import sys
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "end_to_end"))
sys.path.insert(0, str(HERE.parents[2] / "interop"))

import run  # noqa: E402  (the path comes first)
from machine import Silent  # noqa: E402
from rig import Failure  # noqa: E402


class Again(unittest.TestCase):
    def setUp(self):
        self.wire = types.SimpleNamespace(guest=types.SimpleNamespace(replaced=False), rig=unittest.mock.Mock())
        self.case = unittest.mock.Mock()
        self.tidied = unittest.mock.patch.object(run, "tidy").start()
        unittest.mock.patch("builtins.print").start()
        self.addCleanup(unittest.mock.patch.stopall)

    def checked(self):
        return run.checked_again(self.case, self.wire, "server")

    def test_a_silent_guest_is_replaced_once(self):
        self.case.run.side_effect = [Silent("no answer"), "fine"]
        self.assertEqual(self.checked(), "fine")
        self.tidied.assert_called_once_with(self.wire)
        self.case.run.side_effect = [Silent("no answer"), "fine"]
        with self.assertRaises(Silent):
            self.checked()

    def test_two_silent_guests_fail_the_case(self):
        self.case.run.side_effect = Silent("no answer")
        with self.assertRaises(Silent):
            self.checked()
        self.assertEqual(self.case.run.call_count, 2)

    def test_another_failure_is_not_tried_again(self):
        self.case.run.side_effect = Failure("wrong octets")
        with self.assertRaises(Failure):
            self.checked()
        self.assertEqual(self.case.run.call_count, 1)
        self.tidied.assert_not_called()

    def test_an_engine_that_is_not_healthy_fails_the_case(self):
        """Then the guest may be silent because of the engine."""
        self.case.run.side_effect = [Silent("no answer"), "fine"]
        self.tidied.side_effect = Failure("the engine ended")
        with self.assertRaises(Failure):
            self.checked()
        self.assertEqual(self.case.run.call_count, 1)


if __name__ == "__main__":
    unittest.main()
