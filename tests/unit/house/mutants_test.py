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
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/mutate"))
import generate  # noqa: E402
import reach  # noqa: E402
import run  # noqa: E402
import tree  # noqa: E402


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
        """tree.code_of() an object with what a debugger reads."""
        with tempfile.TemporaryDirectory() as folder:
            source, made = pathlib.Path(folder, "a.c"), pathlib.Path(folder, "a.o")
            source.write_text(text)
            subprocess.run(["cc", "-g", "-c", "a.c", "-o", str(made)], cwd=folder, check=True)
            return tree.code_of(made)

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


    def test_assertions_and_what_is_no_code_stay_as_they_are(self):
        text = "#define A 1\nvoid f(void)\n{\n\tassert(a == 1 &&\n\t       b < 2);\n\tassert(c);\n\t/* > 4 */\n\tg(\"< 3\");\n}\n"
        code = generate.code_only(text)
        self.assertEqual((len(text), text.count("\n")), (len(code), code.count("\n")))
        self.assertEqual([], [*generate.operators(code, text), *generate.constants(code, text), *generate.swaps(code, text)])
        self.assertEqual(["left out: g(\"< 3\");"], [why for *_, why in generate.deletions(code, text)])


class Stubborn:
    """A tree whose compiler says this of each mutant, in which tests fail these times, and some take long."""

    def __init__(self, folder, log="", fails=None, how="status 1"):
        self.root = pathlib.Path(folder)
        self.log = log
        self.how = how
        self.limits = []
        self.fails = dict(fails or {})
        self.tests = dict.fromkeys(("base/one", "base/two", "wire/three", "lcore/a"), {})
        self.ran = []
        (self.root / "lib/base").mkdir(parents=True)
        (self.root / "lib/base/a.c").write_text("int f(void)\n{\n\treturn 1;\n}\n\nint g(void)\n{\n\treturn 2 +\n\t\t3;\n}\n")

    def compiled(self, file):
        return "as it is"

    def compile(self, file):
        return (None if self.log else (self.root / file).read_text()), self.log

    def make(self, names):
        return True, ""

    def try_test(self, name, limit):
        self.ran.append(name)
        self.limits.append(limit)
        self.fails[name] = self.fails.get(name, 0) - 1
        return (self.how if self.fails[name] >= 0 else ""), 0.1


def reach_of(tree, **ran):
    """A map: of each test its seconds and the lines that it ran of a.c, which has code in lines 3 and 8."""
    of = reach.version((tree.root / "lib/base/a.c").read_text())
    made = reach.Reach(tree.root / "map")
    for name, (seconds, lines) in ran.items():
        missed = [n for n in (3, 8) if n not in lines]
        made.tests[name.replace("_", "/")] = {"how": "", "seconds": seconds,
                                              "lines": {"lib/base/a.c": [of, lines, missed]}}
    return made


class Planted(unittest.TestCase):
    """run.run_one() of a mistake in the first function, which each of three tests calls."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name

    def result(self, most=60, find="return 1", **tree):
        self.tree = Stubborn(self.folder, **tree)
        before = (self.tree.root / "lib/base/a.c").read_text()
        made = reach_of(self.tree, base_one=(20, [3]), base_two=(30, [3]), wire_three=(1, [3]), lcore_a=(40, [3]))
        planted = {"file": "lib/base/a.c", "find": find, "replace": "return 7"}
        said = run.run_one(run.Mutant(planted, "a"), self.tree, made, most)
        self.assertEqual(before, (self.tree.root / "lib/base/a.c").read_text())
        return said

    def test_what_stops_the_compiler_is_no_mistake_that_a_test_noticed(self):
        self.assertEqual("invalid", self.result(log="error: unknown type name")[0])

    def test_an_assertion_of_the_compiler_notices(self):
        self.assertEqual("caught", self.result(log="error: static assertion failed: \"a\"")[0])

    def test_the_files_own_test_is_first_and_then_the_quickest(self):
        self.assertEqual(("SURVIVED", "4 of 4 tests that run it"), self.result(most=91))
        self.assertEqual(["lcore/a", "wire/three", "base/one", "base/two"], self.tree.ran)

    def test_the_slowest_are_left_out(self):
        self.assertEqual(("SURVIVED", "3 of 4 tests that run it"), self.result(most=90))
        self.assertEqual(["lcore/a", "wire/three", "base/one"], self.tree.ran)

    def test_the_first_that_fails_twice_notices(self):
        said = self.result(fails={"lcore/a": 1, "wire/three": 2})
        self.assertEqual(("caught", "wire/three (status 1)"), said)
        self.assertEqual(["lcore/a", "lcore/a", "wire/three", "wire/three"], self.tree.ran)

    def test_one_that_hangs_has_twice_the_time_once_more(self):
        said = self.result(fails={"lcore/a": 1, "wire/three": 2}, how="hangs")
        self.assertEqual(("caught", "wire/three (hangs)"), said)
        self.assertEqual([75, 150, 15, 30], self.tree.limits)

    def test_a_test_has_time_in_proportion_to_its_own(self):
        self.assertEqual([5, 15, 75], [run.limit(seconds) for seconds in (0, 1, 40)])

    def test_what_no_test_runs_survives_at_once(self):
        self.assertEqual(("SURVIVED", "no test runs it"), self.result(find="return 2"))
        self.assertEqual([], self.tree.ran)


class Alone(unittest.TestCase):
    def test_two_do_not_plant_in_one_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            first = run.alone(pathlib.Path(folder))
            with self.assertRaisesRegex(SystemExit, "^another run.py works in "):
                run.alone(pathlib.Path(folder))
            first.close()
            run.alone(pathlib.Path(folder)).close()


class Reached(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.tree = Stubborn(place.name)
        self.text = (self.tree.root / "lib/base/a.c").read_text()
        self.map = reach_of(self.tree, base_one=(1, [3]), base_two=(1, [8]), lcore_a=(1, []))

    def by(self, line, text=None):
        return list(self.map.reaching("lib/base/a.c", text or self.text, line, line))

    def test_by_those_that_run_the_line(self):
        self.assertEqual((["base/one"], ["base/two"]), (self.by(3), self.by(8)))

    def test_a_line_that_goes_on_counts_with_its_beginning(self):
        self.assertEqual(["base/two"], self.by(9))

    def test_a_line_between_functions_is_reached_by_all_that_run_the_file(self):
        self.assertEqual(["base/one", "base/two"], self.by(5))

    def test_so_is_a_file_that_has_changed(self):
        self.assertEqual(["base/one", "base/two"], self.by(3, self.text + "int more;\n"))

    def test_data_may_be_used_by_any(self):
        self.assertEqual(["base/one", "base/two", "lcore/a"], list(self.map.reaching("lib/base/data.c", "int a = 1;\n", 1, 1)))

    def test_both_lines_of_a_swap_count(self):
        swap = run.Mutant({"file": "lib/base/a.c", "find": "3;\n}", "replace": ""}, "swap")
        self.assertEqual((9, 10), swap.lines(self.tree.root))

    def test_the_counters_say_which_lines_ran(self):
        root = self.tree.root
        self.tree.build = root / "build"
        self.tree.build.mkdir()
        (root / "main.c").write_text("int f(void);\nint main(void)\n{\n\treturn f() - 1;\n}\n")
        subprocess.run(["cc", "--coverage", "../lib/base/a.c", "../main.c", "-o", "a"], cwd=self.tree.build, check=True)
        with tempfile.TemporaryDirectory() as folder:
            env = {"GCOV_PREFIX": folder, "GCOV_PREFIX_STRIP": str(len(self.tree.build.parts) - 1)}
            subprocess.run([str(self.tree.build / "a")], env=env, check=True)
            lines = reach.counted(self.tree, pathlib.Path(folder))
        ran, missed = lines["lib/base/a.c"]
        self.assertTrue({3} <= set(ran) and {8} <= set(missed), lines)


class Ended(unittest.TestCase):
    def test_what_a_test_leaves_behind_ends_with_it(self):
        made = tree.Tree.__new__(tree.Tree)
        made.build = pathlib.Path("/")
        with tempfile.TemporaryDirectory() as folder:
            script = "import os, signal\nr, w = os.pipe()\nif os.fork() == 0:\n os.setpgid(0, 0)\n" \
                     " os.write(w, b'x')\n signal.pause()\nos.read(r, 1)"
            made.tests = {"a": {"cmd": [sys.executable, "-c", script], "env": {"MARK": folder}, "workdir": None}}
            self.assertEqual("", made.try_test("a", 60)[0])
            end = time.monotonic() + 20  # what was killed still has to end
            while self.with_mark(folder) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual([], self.with_mark(folder))

    def with_mark(self, mark):
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                found += [path] if f"MARK={mark}".encode() in path.read_bytes() else []
            except OSError:
                pass
        return found


class Tests(unittest.TestCase):
    names = []

    def unmatched(self, patterns):
        return [p for p in patterns if not fnmatch.filter(self.names, p)]

    def test_those_that_an_entry_names_exist(self):
        self.assertEqual([], [(m.name, p) for m in run.from_table() for p in self.unmatched(m.tests)])

    def test_each_folder_with_mistakes_has_some_that_are_measured(self):
        measured = {n.split("/")[0] for n in self.names} - set(reach.ELSEWHERE)
        self.assertLessEqual({"base", "wire", "lcore", "engine", "verbs", "client_memory", "drivers"}, measured)


if __name__ == "__main__":
    Tests.names = [t["name"] for t in json.loads(pathlib.Path(sys.argv[1]).read_text())]
    unittest.main(argv=sys.argv[:1])
