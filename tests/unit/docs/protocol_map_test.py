#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The functions and tests that docs/protocol-map.md names exist in the files that it names."""

import fnmatch
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
MAP = ROOT / "docs/protocol-map.md"
TEST_FILE = re.compile(r"((?:unit|story|sim)/[\w/]+\.(?:c|py))(?: \([^)]*\))?(?:: ([^;|]*))?")
TEST_NAME = re.compile(r"(?:Parameterized)?Test\(\w+, (\w+)|^\s*def (?:case_)?(\w+)\(", re.MULTILINE)


def rows(text):
    """(number, functions, tests) of each line of the map's tables; rsockets have no numbers."""
    for line in text.splitlines():
        cells = line.strip("| ").split(" | ")
        if line.startswith("| ") and len(cells) >= 3 and cells[0] not in ("no.", "what"):
            yield cells[0], cells[-2], cells[-1]


def named_functions(cell):
    """'a.c: one, two; b.c, c.c' as pairs of a file and a function, or of a file and None."""
    for group in cell.split(";"):
        file, colon, names = group.strip().partition(": ")
        if colon:
            yield from ((file, name.strip()) for name in names.split(","))
        else:
            yield from ((name.strip(), None) for name in file.split(","))


def named_tests(cell):
    for path, names in TEST_FILE.findall(cell):
        for name in names.split(",") if names else [None]:
            yield path, name and name.strip()


def function_is_wrong(sources, file, name):
    found = [path for path in sources if f"/{path}".endswith(f"/{file}")]
    if not found:
        return "there is no such file"
    if name and not any(re.search(rf"\b{re.escape(name)}\b", path.read_text()) for path in found):
        return "it is not in that file"
    return None


def test_is_wrong(path, name):
    file = ROOT / "tests" / path
    if not file.is_file():
        return "there is no such file"
    names = [one or other for one, other in TEST_NAME.findall(file.read_text())]
    if name and not fnmatch.filter(names, name):
        return "there is no such test"
    return None


def sources():
    return [path for folder in ("lib", "drivers") for path in (ROOT / folder).rglob("*.[ch]")]


class ProtocolMap(unittest.TestCase):
    def test_functions_exist(self):
        files = sources()
        wrong = [f"{number}, {file}: {name}: {problem}"
                 for number, cell, _ in rows(MAP.read_text()) for file, name in named_functions(cell)
                 if (problem := function_is_wrong(files, file, name))]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_tests_exist(self):
        wrong = [f"{number}, {path}: {name}: {problem}"
                 for number, _, cell in rows(MAP.read_text()) for path, name in named_tests(cell)
                 if (problem := test_is_wrong(path, name))]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_there_are_rows(self):
        self.assertGreater(len(list(rows(MAP.read_text()))), 150)


class Reading(unittest.TestCase):
    """The code that reads the map does not overlook mistakes."""

    def test_rows(self):
        text = "| no. | behaviour | function | tests |\n|---|---|---|---|\n| 1 | a | b.c: d | e |\nf"
        self.assertEqual(list(rows(text)), [("1", "b.c: d", "e")])

    def test_functions(self):
        self.assertEqual(list(named_functions("a.c: one, two; b.c, c.h")),
                         [("a.c", "one"), ("a.c", "two"), ("b.c", None), ("c.h", None)])
        here = pathlib.Path(__file__)
        self.assertIsNone(function_is_wrong([here], here.name, "rows"))
        self.assertIsNone(function_is_wrong([here], f"docs/{here.name}", None))
        self.assertIn("not in", function_is_wrong([here], here.name, "row" + "z"))
        self.assertIn("no such file", function_is_wrong([here], "map_test.py", None))

    def test_tests(self):
        self.assertEqual(list(named_tests("UC: story/a_test.c: one, *_b; unit/c_test.py (d); end: e/f")),
                         [("story/a_test.c", "one"), ("story/a_test.c", "*_b"), ("unit/c_test.py", None)])
        here = "unit/docs/protocol_map_test.py"
        self.assertIsNone(test_is_wrong(here, "test_r*"))
        self.assertIn("no such test", test_is_wrong(here, "nothing"))
        self.assertIn("no such file", test_is_wrong("unit/docs/nothing.c", None))


if __name__ == "__main__":
    unittest.main()
