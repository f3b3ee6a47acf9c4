#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The table of tests/nic: cells that a run writes into a page, and cells that it leaves there."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
for folder in ("end_to_end", "interop", "nic"):
    sys.path.insert(0, str(ROOT / "tests" / folder))

import rig as rigs  # noqa: E402
from nic_cases import Case  # noqa: E402
from nic_table import BEGIN, END, NicTable  # noqa: E402
from nics import Nic  # noqa: E402

ONE, TWO = Nic("one", "net_one"), Nic("two", "net_two", express=False)
CASES = [Case("a", None, None), Case("b/c", None, None),
         Case("removed", None, None, on=lambda nic: nic.express)]


def fails(text):
    raise rigs.Failure(text)


def skips(text):
    raise rigs.Skipped(text)


class NicTableTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.page = pathlib.Path(self.folder.name) / "page.md"

    def rows(self):
        return [line for line in self.page.read_text().splitlines() if line.startswith("| `")]

    def write(self, *runs):
        table = NicTable()
        for name, function in runs:
            table.run(name, function)
        table.write(self.page, [ONE, TWO], CASES)

    def test_each_cell_says_how_it_went(self):
        self.write(("one/a", lambda: None), ("two/a", lambda: fails("x")), ("one/b/c", lambda: skips("y")))
        self.assertEqual(self.rows(), ["| `a` | ok | **fails** |", "| `b/c` | skipped | not run |",
                                       "| `removed` | not run | - |"])

    def test_a_later_run_keeps_what_it_did_not_run(self):
        self.write(("one/a", lambda: None), ("two/a", lambda: fails("x")))
        self.write(("two/a", lambda: None), ("one/removed", lambda: None))
        self.assertEqual(self.rows(), ["| `a` | ok | ok |", "| `b/c` | not run | not run |",
                                       "| `removed` | ok | - |"])
        self.assertIn("2 of 5 cases", self.page.read_text())
        self.assertIn("earlier runs", self.page.read_text())

    def test_the_text_around_the_table_stays(self):
        self.page.write_text(f"before\n\n{BEGIN}| old |\n{END}\nafter\n")
        self.write(("one/a", lambda: None))
        text = self.page.read_text()
        self.assertTrue(text.startswith(f"before\n\n{BEGIN}| case | one | two |\n"), text)
        self.assertTrue(text.endswith(f"{END}\nafter\n"), text)
        self.assertNotIn("old", text)

    def test_a_whole_run_is_said_to_be_one(self):
        self.write(*((f"{nic}/{case}", lambda: None) for nic in ("one", "two")
                     for case in ("a", "b/c", "removed") if (nic, case) != ("two", "removed")))
        self.assertIn("5 of 5 cases", self.page.read_text())
        self.assertIn("in one go", self.page.read_text())


unittest.main()
