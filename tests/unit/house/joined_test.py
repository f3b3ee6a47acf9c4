#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of several files: each suite of theirs is run by one test of meson, which filters it.

    joined_test.py META    the folder meson-info of the build
"""

import collections
import json
import pathlib
import re
import sys
import unittest

TEST = re.compile(r"^Test\((\w+),", re.MULTILINE)


def filters(tests):
    """{program: the suites that its filters name}; a filter is 'suite/*' or '@(one|other)/*'."""
    named = collections.defaultdict(list)
    for test in tests:
        if test["cmd"][1:2] == ["--filter"]:
            named[test["cmd"][0]] += re.findall(r"\w+", test["cmd"][2])
    return named


def sources(targets):
    return {name: [file for group in t["target_sources"] for file in group["sources"]]
            for t in targets if t["type"] == "executable" for name in t["filename"]}


def suites(files):
    return {suite for file in files for suite in TEST.findall(pathlib.Path(file).read_text())}


class Joined(unittest.TestCase):
    tests = targets = None

    def test_every_suite_is_run_once(self):
        files = sources(self.targets)
        named = filters(self.tests)
        self.assertTrue(named)
        for program, once in named.items():
            self.assertEqual(sorted(suites(files[program])), sorted(once), program)

    def test_suites_of_filters(self):
        tests = [{"cmd": ["a", "--filter", "one/*"]}, {"cmd": ["a", "--filter", "@(two|three)/*"]},
                 {"cmd": ["b", "-j1"]}, {"cmd": ["with_engine.sh", "a", "--filter", "four/*"]}]
        self.assertEqual({"a": ["one", "two", "three"]}, filters(tests))


if __name__ == "__main__":
    META = pathlib.Path(sys.argv[1])
    Joined.tests = json.loads((META / "intro-tests.json").read_text())
    Joined.targets = json.loads((META / "intro-targets.json").read_text())
    unittest.main(argv=sys.argv[:1])
