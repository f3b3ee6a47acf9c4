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

import forward_test
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


class Installation:
    """The files that `meson install` makes, and the examples, built with them alone."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-outside-"))
        unittest.addModuleCleanup(shutil.rmtree, self.folder)
        sh("meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir",
           str(self.folder / "root"))
        found = list((self.folder / "root").rglob("uroce.pc"))
        assert len(found) == 1, found
        self.root = self.relocate(found[0])
        self.env = dict(os.environ, PKG_CONFIG_PATH=str(found[0].parent), CC="gcc")
        verbs = sh("pkg-config", "--variable=verbsdir", "uroce", env=self.env).strip()
        self.library = str(pathlib.Path(verbs).parent)
        self.libraries = f"{self.library}:{verbs}"  # the drop-in ones, too, as `uroce run` has them
        self.build()

    @staticmethod
    def relocate(pc):
        """As if the prefix were where DESTDIR put it. Returns that folder."""
        root = pc.parents[2] if pc.parents[1].name == "lib" else pc.parents[3]
        pc.write_text(re.sub(r"^prefix=.*", f"prefix={root}", pc.read_text(), flags=re.MULTILINE))
        return root

    def build(self):
        examples = next((self.folder / "root").rglob("doc/uroce/examples"))
        shutil.copytree(examples, self.folder / "examples")
        rig.PROGRAMS.clear()
        rig.PROGRAMS["uroced"] = str(self.root / "bin/uroced")
        for folder, programs in FOLDERS.items():
            sh("make", "-C", str(self.folder / "examples" / folder), env=self.env)
            for name in programs:
                rig.PROGRAMS[name] = str(self.folder / "examples" / folder / name)


def setUpModule():
    global installed
    installed = Installation()


class Outside(unittest.TestCase):
    def setUp(self):
        os.environ["VERBS"] = installed.library

    def test_smallest(self):
        self.assertIn("hello, myself", rig.run("smallest", *rig.eal("outside")))

    def test_polling(self):
        for way in ("threads", "service", "node"):
            text = rig.run("polling", "--lcores=0@(0-1),1@(0-1)", *rig.eal("outside"), "--", way)
            self.assertIn("written: number 19", text)

    def test_they_use_what_was_installed(self):
        for program, libraries in (("kv-server", ("uroce", "ibverbs", "rdmacm")),
                                   ("forward", ("uroce", "ibverbs", "rdmacm"))):
            text = sh("ldd", rig.PROGRAMS[program],
                      env=dict(installed.env, LD_LIBRARY_PATH=installed.library))
            for library in libraries:
                self.assertRegex(text, rf"lib{library}\.so\.1 => {re.escape(str(installed.root))}/")

    def test_key_value(self):
        os.environ["VERBS"] = installed.libraries
        path = str(installed.folder / "kv.sock")
        server = rig.Program("kv-server", "--lcores=0@(0-1)", *rig.eal("outside-kv"), "--", "--socket",
                             path)
        self.addCleanup(server.end)
        server.await_text("ready")
        rig.run("kv", "127.0.0.1", "put", "where", "outside", UROCE_SOCKET=path)
        self.assertEqual(rig.run("kv", "127.0.0.1", "get", "where", UROCE_SOCKET=path).strip(),
                         "outside")

    @staticmethod
    def bpf():
        """libbpf, if uroce was built with it."""
        needs = sh("pkg-config", "--print-requires-private", "uroce", env=installed.env).split()
        return ["-lbpf"] if "libbpf" in needs else []

    def test_static_library(self):
        """The smallest example with liburoce.a; only the verbs library is shared then."""
        flags = sh("pkg-config", "--cflags", "uroce", env=installed.env).split()
        libraries = sh("pkg-config", "--libs", "uroce", env=installed.env).split()
        libraries = ["-l:liburoce.a" if word == "-luroce" else word for word in libraries]
        source = installed.folder / "examples/smallest"
        program = str(installed.folder / "static")
        sh("gcc", *flags, "-o", program, str(source / "smallest.c"), str(source / "self.c"),
           *libraries, "-lisal", "-lmnl", "-lnuma", *self.bpf(), "-lrte_bus_vdev", "-lpthread")
        os.environ["VERBS"] = installed.libraries
        self.assertNotIn("liburoce", sh("ldd", program, env=rig.environment()))
        rig.PROGRAMS["static"] = program
        self.assertIn("hello, myself", rig.run("static", *rig.eal("outside-static")))


@unittest.skipUnless(os.geteuid() == 0, "network namespaces need root")
class Forward(forward_test.Forward):
    """As in the tree, with the programs from outside."""

    def setUp(self):
        os.environ["VERBS"] = installed.libraries
        super().setUp()


if __name__ == "__main__":
    unittest.main()
