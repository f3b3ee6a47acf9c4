#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What `meson install` puts into a folder is enough: the examples are built there by their Makefiles,
without this tree, and run. usage: outside_test.py BUILD"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import rig

BUILD = pathlib.Path(sys.argv.pop(1))
FOLDERS = {"smallest": ["smallest", "polling"], "forward": ["forward", "collector"],
           "kv": ["kv-server", "kv", "kv-load"]}


def sh(*words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.stdout}")
    return done.stdout


class Outside(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-outside-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        sh("meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir",
           str(cls.folder / "root"))
        found = list((cls.folder / "root").rglob("uroce.pc"))
        assert len(found) == 1, found
        cls.root = cls.relocate(found[0])
        cls.env = dict(os.environ, PKG_CONFIG_PATH=str(found[0].parent), CC="gcc")
        examples = next((cls.folder / "root").rglob("doc/uroce/examples"))
        shutil.copytree(examples, cls.folder / "examples")
        for folder, programs in FOLDERS.items():
            sh("make", "-C", str(cls.folder / "examples" / folder), env=cls.env)
            for name in programs:
                rig.PROGRAMS[name] = str(cls.folder / "examples" / folder / name)
        os.environ["VERBS"] = ""

    @staticmethod
    def relocate(pc):
        """As if the prefix were where DESTDIR put it. Returns the folder of the drop-in libraries."""
        root = pc.parents[2] if pc.parents[1].name == "lib" else pc.parents[3]
        pc.write_text(re.sub(r"^prefix=.*", f"prefix={root}", pc.read_text(), flags=re.MULTILINE))
        return root

    def verbs(self):
        return sh("pkg-config", "--variable=verbsdir", "uroce", env=self.env).strip()

    def test_smallest(self):
        self.assertIn("hello, myself", self.installed("smallest", *rig.eal("outside")))

    def test_polling(self):
        for way in ("threads", "service", "node"):
            text = self.installed("polling", "--lcores=0@(0-1),1@(0-1)", *rig.eal("outside"), "--", way)
            self.assertIn("written: number 19", text)

    def installed(self, name, *words):
        return rig.run(name, *words, LD_LIBRARY_PATH=str(pathlib.Path(self.verbs()).parent))

    def test_they_use_what_was_installed(self):
        text = sh("ldd", rig.PROGRAMS["kv-server"],
                  env=dict(self.env, LD_LIBRARY_PATH=str(pathlib.Path(self.verbs()).parent)))
        for library in ("liburoce.so.1", "libibverbs.so.1", "librdmacm.so.1"):
            self.assertRegex(text, rf"{re.escape(library)} => {re.escape(str(self.root))}/")

    def test_key_value(self):
        """Its clients find the drop-in libraries by `uroce run`'s way, LD_LIBRARY_PATH."""
        path = str(self.folder / "kv.sock")
        libraries = f"{pathlib.Path(self.verbs()).parent}:{self.verbs()}"
        server = rig.Program("kv-server", "--lcores=0@(0-1)", *rig.eal("outside-kv"), "--", "--socket",
                             path, LD_LIBRARY_PATH=libraries)
        self.addCleanup(server.end)
        server.await_text("ready")
        more = {"UROCE_SOCKET": path, "LD_LIBRARY_PATH": libraries}
        rig.run("kv", "127.0.0.1", "put", "where", "outside", **more)
        self.assertEqual(rig.run("kv", "127.0.0.1", "get", "where", **more).strip(), "outside")

    def test_static_library(self):
        """The smallest example with liburoce.a; only the verbs library is shared then."""
        flags = sh("pkg-config", "--cflags", "uroce", env=self.env).split()
        libraries = sh("pkg-config", "--libs", "uroce", env=self.env).split()
        libraries = ["-l:liburoce.a" if word == "-luroce" else word for word in libraries]
        source = self.folder / "examples/smallest"
        sh("gcc", *flags, "-o", str(self.folder / "static"), str(source / "smallest.c"),
           str(source / "self.c"), *libraries, "-lisal", "-lmnl", "-lrte_bus_vdev", "-lpthread")
        rig.PROGRAMS["static"] = str(self.folder / "static")
        self.assertNotIn("liburoce", sh("ldd", rig.PROGRAMS["static"]))
        self.assertIn("hello, myself", rig.run("static", *rig.eal("outside-static")))


if __name__ == "__main__":
    unittest.main()
