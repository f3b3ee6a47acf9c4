#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""docs/hostile-map.md has every entry once, each names tests that are there and name the entry, and
no test or source names an entry that the map lacks."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
MAP = ROOT / "docs/hostile-map.md"
ENTRIES = range(1, 161)
ROW = re.compile(r"^\| H-(\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ABOVE = re.compile(r"\s*(/\*| \*|#|@|//)")
SUFFIXES = {".c", ".h", ".py", ".sh", ".md", ".build"}


def rows():
    """(number, the cell of its tests) of each line of the map's tables."""
    return [(int(number), tests) for number, _, _, tests in ROW.findall(MAP.read_text())]


def named(cell):
    """'path: one, two; path: three' as pairs of a path and a test's name."""
    for group in cell.split(";"):
        path, _, names = group.strip().partition(": ")
        for name in names.split(","):
            yield path, name.strip()


def is_test(line, name):
    return re.match(rf"(?:Parameterized)?Test\(\w+, {name}\b|\s*def {name}\(", line)


def text_of(lines, name):
    """The test with the comments above it; None if there is no such test."""
    at = next((i for i, line in enumerate(lines) if is_test(line, name)), None)
    if at is None:
        return None
    begin, end = at, at + 1
    while begin > 0 and ABOVE.match(lines[begin - 1]):
        begin -= 1
    if lines[at].startswith("Test") or lines[at].startswith("Param"):
        while end < len(lines) and lines[end] != "}":
            end += 1
    else:
        depth = len(lines[at]) - len(lines[at].lstrip())
        while end < len(lines) and (not lines[end].strip() or
                                    len(lines[end]) - len(lines[end].lstrip()) > depth):
            end += 1
    return "\n".join(lines[begin:end])


def what_is_wrong(number, path, name):
    file = ROOT / "tests" / path
    if not file.is_file():
        return "there is no such file"
    text = text_of(file.read_text().splitlines(), name)
    if text is None:
        return "there is no such test"
    if not re.search(rf"\bH-{number}\b", text):
        return f"neither it nor the comment above it names H-{number}"
    return None


class HostileMap(unittest.TestCase):
    def test_every_entry_once(self):
        self.assertEqual([number for number, _ in rows()], list(ENTRIES))

    def test_tests_are_there_and_name_the_entry(self):
        wrong = [f"H-{number}, {path}: {name}: {problem}" for number, cell in rows()
                 for path, name in named(cell)
                 if (problem := what_is_wrong(number, path, name))]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_no_other_entry_is_named(self):
        wrong = []
        for folder in ("apps", "docs", "drivers", "lib", "tests"):
            for file in (ROOT / folder).rglob("*"):
                if file.suffix in SUFFIXES and file.is_file():
                    wrong += [f"{file.relative_to(ROOT)}: H-{number}" for number in
                              re.findall(r"\bH-(\d+)\b", file.read_text(errors="replace"))
                              if int(number) not in ENTRIES]
        self.assertEqual(wrong, [])


class Reading(unittest.TestCase):
    """The code that reads the map does not overlook mistakes."""

    def test_text_of_a_test(self):
        lines = ["/* hostile H-1: a */", "Test(s, one)", "{", "}", "", "/* H-2 */",
                 "Test(s, two, .x = 1)", "{", "\tx(); /* H-3 */", "}", "/* H-4 */"]
        self.assertEqual(text_of(lines, "one"), "\n".join(lines[:3]))
        self.assertEqual(text_of(lines, "two"), "\n".join(lines[5:9]))
        self.assertIsNone(text_of(lines, "tw"))
        lines = ["# H-1", "@case", "def one(x):", "    pass", "", "def two(y):", "    H-2"]
        self.assertEqual(text_of(lines, "one"), "\n".join(lines[:5]))
        self.assertEqual(text_of(lines, "two"), "\n".join(lines[5:]))

    def test_names(self):
        self.assertEqual(list(named("a/b.c: one, two; c.py: three")),
                         [("a/b.c", "one"), ("a/b.c", "two"), ("c.py", "three")])

    def test_what_is_wrong(self):
        here = "unit/docs/hostile_map_test.py"
        self.assertIn("no such file", what_is_wrong(1, "unit/docs/nothing.c", "x"))
        self.assertIn("no such test", what_is_wrong(1, here, "nothing"))
        self.assertIn("names H-156", what_is_wrong(156, here, "test_names"))
        self.assertIsNone(what_is_wrong(1, here, "test_text_of_a_test"))


if __name__ == "__main__":
    unittest.main()
