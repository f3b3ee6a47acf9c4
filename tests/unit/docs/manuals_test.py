#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Each program, option and function has its manual page, and `meson install` installs all of them."""

import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
MANUALS = ROOT / "docs/man"
INSTALLED = (ROOT / "docs/meson.build").read_text()


def help_of(*words):
    return subprocess.run([*words, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=True, timeout=60).stdout


def options(text):
    """Those in lines that begin with one."""
    lines = "\n".join(re.findall(r"^ *-.*$", text, re.MULTILINE))
    return set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", lines)) - {"help"}


class Manuals(unittest.TestCase):
    def expect_options(self, page, text):
        manual = (MANUALS / page).read_text()
        lines = "\n".join(re.findall(r"^.*\bFl -.*$", manual, re.MULTILINE))  # Fl -a , -b | -c
        known = set(re.findall(r"(?<!\w)-([a-z][a-z-]*)", lines))
        self.assertEqual(options(text) - known, set(), page)

    def test_options_of_commands(self):
        commands = re.findall(r"^  (\w+) ", help_of(os.environ["UROCE"]), re.MULTILINE)
        self.assertGreater(len(commands), 8)
        for command in commands:
            page = f"uroce-{command}.1"
            if not (MANUALS / page).exists():
                page = "uroce.1"
                self.assertRegex((MANUALS / page).read_text(), rf"\.It Cm {command}\n")
            self.expect_options(page, help_of(os.environ["UROCE"], command))
        for words in (["--scenario", "many"], ["--campaign", "x"]):
            self.expect_options("uroce-sim.1", help_of(os.environ["UROCE"], "sim", *words))

    def test_options_of_uroced(self):
        said = "\n".join(re.findall(r"^  --[\w-]+", help_of(os.environ["UROCED"]), re.MULTILINE))
        self.assertGreater(len(options(said)), 15)
        self.expect_options("uroced.8", said)

    def test_functions_of_liburoce(self):
        functions = re.findall(r"^\t\t(uroce_\w+);", (ROOT / "lib/engine/uroce.map").read_text(),
                               re.MULTILINE)
        self.assertGreater(len(functions), 15)
        described = {}
        for page in MANUALS.glob("*.3"):
            text = page.read_text()
            for name in set(re.findall(r"^\.Nm (uroce_\w+)", text, re.MULTILINE)):
                self.assertIn(f".Fn {name} ", text)
                described[name] = page.stem
        self.assertEqual(set(functions) - set(described), set())
        for name in functions:
            wanted = f"man/{name}.3" if described[name] == name else f"'{name.removeprefix('uroce_')}'"
            self.assertIn(wanted, INSTALLED)

    def test_pages_are_installed(self):
        for page in MANUALS.iterdir():
            self.assertIn(f"'man/{page.name}'", INSTALLED)


if __name__ == "__main__":
    unittest.main()
