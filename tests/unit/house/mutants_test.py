#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Each planted mistake still has its place in the code, and tests that look for it.

    mutants_test.py INTRO_TESTS    meson-info/intro-tests.json of the build
"""

import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/mutate"))
import generate  # noqa: E402
import run  # noqa: E402

RULES = tomllib.loads((ROOT / "tests/mutate/tests_of.toml").read_text())


class Entries(unittest.TestCase):
    def setUp(self):
        self.table = list(run.from_table())

    def test_the_text_of_each_is_once_in_its_file(self):
        self.assertEqual([], run.stale(self.table))

    def test_each_changes_something_else(self):
        keys = {}
        for m in self.table:
            keys.setdefault(m.key(ROOT), []).append(m.name)
        self.assertEqual([], [names for names in keys.values() if len(names) > 1])
        self.assertEqual([], [m.name for m in self.table if m.find == m.replace])

    def test_each_has_a_reason(self):
        self.assertEqual([], [m.name for m in self.table if not m.why])

    def test_an_entry_without_its_text_is_named(self):
        planted = {"file": "lib/base/heap.c", "find": "no such text", "replace": ""}
        often = {"file": "lib/base/heap.c", "find": "h->", "replace": ""}
        said = run.stale([run.Mutant(planted, "gone"), run.Mutant(often, "often")])
        self.assertEqual(2, len(said))
        self.assertRegex(said[0], "^gone is stale: its text is 0 times in lib/base/heap.c")
        self.assertRegex(said[1], "^often is stale: its text is [0-9]+ times in lib/base/heap.c")

    def test_an_entry_without_its_file_is_named(self):
        gone = run.Mutant({"file": "lib/base/gone.c", "find": "a", "replace": "b"}, "moved")
        self.assertEqual(["moved is stale: there is no lib/base/gone.c"], run.stale([gone]))


class Generated(unittest.TestCase):
    def code(self, text):
        """run.code_of() an object with what a debugger reads."""
        with tempfile.TemporaryDirectory() as folder:
            source, made = pathlib.Path(folder, "a.c"), pathlib.Path(folder, "a.o")
            source.write_text(text)
            subprocess.run(["cc", "-g", "-c", "a.c", "-o", str(made)], cwd=folder, check=True)
            return run.code_of(made)

    def test_only_what_does_the_same_is_the_same_code(self):
        one = self.code("int f(void) { return 1; }\n")
        self.assertEqual(one, self.code("int f(void)\n{\n\treturn 2 - 1;\n}\n"))
        self.assertNotEqual(one, self.code("int f(void) { return 2; }\n"))

    def test_what_means_the_same_in_either_order_is_not_swapped(self):
        for first, second, same in (
            ("a->x = false;", "a->events |= v->event;", True),
            ("x = a->y;", "b->z = a->x + 1;", False),
            ("b->z = a->x;", "x = a->y;", False),
            ("a->x = 1;", "b->x = 2;", False),
            ("a->x = next(p);", "a->y = 1;", False),
            ("a->x = 1;", "b = *a;", False),
            ("a->x++;", "a->y = 1;", False),
        ):
            text = f"void f(void)\n{{\n\t{first}\n\t{second}\n}}\n"
            swapped = list(generate.swaps(generate.code_only(text), text))
            self.assertEqual([] if same else 1, swapped if same else len(swapped), text)


class Stubborn:
    """A tree in which only what the first test needs is built."""

    root = None
    builds = True
    tests = {"base/one": {}, "base/two": {}}

    def __init__(self, log):
        self.log = log

    def make(self, names):
        return names == ["base/one"], self.log

    def try_test(self, name, limit):
        return ""

    def limit(self, name):
        return 1

    def passes_without(self, name):
        return True


class Planted(unittest.TestCase):
    def result(self, log):
        with tempfile.TemporaryDirectory() as folder:
            tree = Stubborn(log)
            tree.root = pathlib.Path(folder)
            (tree.root / "lib/base").mkdir(parents=True)
            (tree.root / "lib/base/a.c").write_text("int a;\n")
            planted = {"file": "lib/base/a.c", "find": "int a;", "replace": "in a;"}
            result, _ = run.run_one(run.Mutant(planted, "a"), tree)
            self.assertEqual("int a;\n", (tree.root / "lib/base/a.c").read_text())
        return result

    def test_what_stops_the_compiler_is_no_mistake_that_a_test_noticed(self):
        self.assertEqual("invalid", self.result("error: unknown type name"))

    def test_an_assertion_of_the_compiler_notices(self):
        self.assertEqual("caught", self.result("error: static assertion failed: \"a\""))


class Copied(unittest.TestCase):
    """Paths that meson reports for a copied build are those of the copy."""

    def asked(self, text):
        tree = run.Tree.__new__(run.Tree)
        tree.root = run.ROOT / "build-mutate/tree"
        tree.build = tree.root / "build"
        said = types.SimpleNamespace(stdout=text)
        with unittest.mock.patch.object(run.subprocess, "run", return_value=said):
            return tree.ask("--tests")

    def test_each_path_of_one_string_is_the_copys(self):
        first, second = f"{run.ROOT}/build/lib/verbs", f"{run.ROOT}/build/lib/rdmacm"
        copy = f"{run.ROOT}/build-mutate/tree/build/lib"
        env = {"LD_LIBRARY_PATH": f"{first}:{second}", "UROCE": f"--at={first}"}
        self.assertEqual([{"env": {"LD_LIBRARY_PATH": f"{copy}/verbs:{copy}/rdmacm",
                                   "UROCE": f"--at={copy}/verbs"}}],
                         self.asked(json.dumps([{"env": env}])))

    def test_other_paths_stay(self):
        others = ["/usr/bin/python3", f"/mnt{run.ROOT}/build", f"{run.ROOT}-other/build"]
        self.assertEqual([{"cmd": others}], self.asked(json.dumps([{"cmd": others}])))

    def test_a_copy_that_was_set_up_anew_is_as_it_is(self):
        path = f"{run.ROOT}/build-mutate/tree/build/lib"
        self.assertEqual([{"cmd": [path]}], self.asked(json.dumps([{"cmd": [path]}])))


class Tests(unittest.TestCase):
    names = []

    def unmatched(self, patterns):
        return [p for p in patterns if not fnmatch.filter(self.names, p)]

    def test_those_that_an_entry_names_exist(self):
        self.assertEqual([], [(m.name, p) for m in run.from_table() for p in self.unmatched(m.tests)])

    def test_those_of_a_folder_exist(self):
        for folder, patterns in RULES.items():
            self.assertEqual([], self.unmatched(patterns), folder)

    def test_each_folder_with_mistakes_has_some(self):
        folders = {str(pathlib.PurePath(m.file).parent) for m in run.from_table()}
        for folder in folders | set(generate.FOLDERS):
            self.assertTrue([f for f in RULES if folder.startswith(f)], folder)


if __name__ == "__main__":
    Tests.names = [t["name"] for t in json.loads(pathlib.Path(sys.argv[1]).read_text())]
    unittest.main(argv=sys.argv[:1])
