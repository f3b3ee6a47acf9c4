#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Folders include, and call, only what docs/architecture.md lets them; a planted arrow is found.

    arrows_test.py LIBRARY...    static libraries, those that others may call first
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import arrows  # noqa: E402

LIBRARIES = []
MOST_FILES = 41  # of a folder of lib/ or drivers/


def symbols(library, option):
    out = subprocess.run(["nm", option, library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines() if line and not line.endswith(":")}


class Arrows(unittest.TestCase):
    def test_none_points_backwards(self):
        self.assertEqual([], [f"{f} includes {to}" for f, to in arrows.backward(ROOT)])

    def test_every_folder_has_a_row(self):
        folders = {f"lib/{p.name}" for p in (ROOT / "lib").iterdir() if p.is_dir()}
        self.assertEqual(folders | {"drivers"}, set(arrows.MAY))

    def plant(self, lines):
        """(file, included file) that are found in a copy of the sources with these lines in these files."""
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder).resolve()
            for part in ("lib", "drivers", "config"):
                shutil.copytree(ROOT / part, copy / part)
            for file, line in lines:
                path = copy / file
                path.write_text(f"{line}\n{path.read_text() if path.exists() else ''}")
            return [(str(f), str(to)) for f, to in arrows.backward(copy)]

    def test_a_planted_arrow_is_found(self):
        self.assertEqual([("lib/lcore/rx.c", "lib/control/control.h")],
                         self.plant([("lib/lcore/rx.c", '#include "control/control.h"')]))

    def test_an_arrow_from_each_folder_to_each_other_is_judged(self):
        """Each folder gets a file that includes one of every other: those that the table does not have are found."""
        header = {room: min((ROOT / room).glob("*.h"), key=str).relative_to(ROOT) for room in arrows.MAY
                  if list((ROOT / room).glob("*.h"))}
        lines = [(f"{room}/planted.c", f'#include "{to}"') for room in arrows.MAY for to in header.values()]
        wanted = {(f"{room}/planted.c", str(to)) for room in arrows.MAY for other, to in header.items()
                  if other != room and not any(
                      other.removeprefix("lib/") == allowed for allowed in arrows.MAY[room])}
        found = set(self.plant(lines))
        self.assertEqual(wanted, found)
        self.assertGreater(len(wanted), 100)

    def test_what_is_for_lcores_alone_stays_so(self):
        self.assertEqual([("lib/control/control.c", "lib/lcore/inside.h")],
                         self.plant([("lib/control/control.c", '#include "lcore/inside.h"')]))

    def test_the_connection_manager_has_one_door(self):
        self.assertEqual([("lib/control/control.c", "lib/control/cm/cm_manager.h")],
                         self.plant([("lib/control/control.c", '#include "control/cm/cm_manager.h"')]))


class Calls(unittest.TestCase):
    def test_nobody_calls_up(self):
        """A prototype in the lower folder would hide such a call from the includes."""
        for i, lower in enumerate(LIBRARIES):
            wanted = symbols(lower, "--undefined-only")
            for upper in LIBRARIES[i + 1:]:
                calls = sorted(wanted & symbols(upper, "--defined-only"))
                self.assertEqual([], calls, f"{lower} calls {upper}")


class Folders(unittest.TestCase):
    def test_none_is_crowded(self):
        folders = [p for part in ("lib", "drivers") for p in (ROOT / part).rglob("*") if p.is_dir()]
        crowded = {str(p.relative_to(ROOT)): n for p in folders
                   if (n := sum(f.is_file() for f in p.iterdir())) > MOST_FILES}
        self.assertEqual({}, crowded)


if __name__ == "__main__":
    LIBRARIES = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
