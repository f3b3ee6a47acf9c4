#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The reference of liburoce: Doxygen has nothing to warn of, and everything of the header is in it."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADER = (ROOT / "lib/engine/uroce.h").read_text()


class Reference(unittest.TestCase):
    def test_is_whole(self):
        folder = tempfile.mkdtemp(prefix="uroce-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        end = subprocess.run([ROOT / "scripts/doxygen.sh", folder], capture_output=True, text=True)
        self.assertEqual((end.returncode, end.stdout, end.stderr), (0, "", ""))
        pages = {path.name: path.read_text() for path in pathlib.Path(folder, "html").glob("*.html")}
        text = "\n".join(pages.values())
        functions = re.findall(r"^UROCE_API [^(]*?\*?(\w+)\(", HEADER, re.MULTILINE)
        self.assertGreater(len(functions), 15)
        for name in functions:
            self.assertTrue(re.search(rf">{name}</(a|b)> \(", text), name)
        structs = re.findall(r"^struct (\w+) \{", HEADER, re.MULTILINE)
        self.assertGreater(len(structs), 3)
        for name in structs:
            self.assertIn(f"struct{name.replace('_', '__')}.html", pages)
        for words in ("liburoce: an RDMA engine inside a DPDK program",
                      "of the link, Mbit/s, for ibv_query_port()",  # behind a member
                      "Idle lcores sleep."):  # before one
            self.assertTrue(words in text, words)


if __name__ == "__main__":
    if shutil.which("doxygen") is None:
        print("skipped: doxygen is not installed")
        sys.exit(77)
    unittest.main()
