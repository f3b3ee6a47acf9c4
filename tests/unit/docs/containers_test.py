#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The files of config/container agree with what they use: the packages, uroced's options, the page that gives the
reasons. tests/container/run.py tries what they ask for."""

import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "config/container"
PAGE = (ROOT / "docs/containers.md").read_text()
CONTROL = (ROOT / "debian/control").read_text()
DOCKERFILE = (FOLDER / "Dockerfile").read_text().replace("\\\n", " ")
ORCHESTRATED = ("compose.yaml", "daemonset.yaml")


def words(pattern, text):
    """The words of what the group of the pattern finds, wherever it does."""
    return {word for found in re.findall(pattern, text) for word in re.findall(r"[\w.+-]+", found)}


class Containers(unittest.TestCase):
    def test_the_image_has_what_the_packages_are_built_with(self):
        field = re.search(r"^Build-Depends:(.*?)^\S", CONTROL, re.MULTILINE | re.DOTALL)[1]
        needed = {re.match(r"[\w.+-]+", word.strip())[0] for word in field.split(",")}
        installed = set(re.search(r"AS build\s+RUN .*?install -y --no-install-recommends (.*)",
                                  DOCKERFILE)[1].split())
        self.assertIn("debhelper-compat", needed)
        self.assertEqual(needed - {"debhelper-compat"} - installed, set())

    def test_its_packages_are_ours(self):
        ours = set(re.findall(r"^Package: (\S+)", CONTROL, re.MULTILINE))
        used = set(re.findall(r"/packages/([a-z0-9-]+)_\*\.deb", DOCKERFILE))
        self.assertIn("uroced", used)
        self.assertEqual(used - ours, set())

    def test_options_of_uroced(self):
        known = set(re.findall(r"(?<=^  )--[a-z-]+", subprocess.run(
            [os.environ["UROCED"], "--help"], capture_output=True, text=True, timeout=30, check=True).stdout,
            re.MULTILINE))
        given = [re.search(r'AS engine.*?^CMD \[(.*?)\]', DOCKERFILE, re.MULTILINE | re.DOTALL)[1],
                 re.search(r"name: uroced\n.*?args: \[(.*?)\]", (FOLDER / "daemonset.yaml").read_text(), re.DOTALL)[1]]
        for text in given:
            options = set(re.findall(r"--[a-z-]+", text))
            self.assertIn("--socket", options)
            self.assertEqual(options - known, set())

    def test_the_folder_of_the_socket(self):
        """The place at which every engine makes its socket is the place at which every program looks for it."""
        for name in ORCHESTRATED:
            text = (FOLDER / name).read_text()
            mounts = re.findall(r'volumes: \["socket:([^"]*)"\]|name: socket, mountPath: ([\w/]+)', text)
            self.assertGreater(len(mounts), 1, name)
            self.assertEqual({one or other for one, other in mounts}, {"/run/uroce"}, name)

    def test_capabilities_have_their_reasons(self):
        for name in ORCHESTRATED:
            capabilities = words(r"\b(?:cap_add|add): \[(.*?)\]", (FOLDER / name).read_text())
            self.assertIn("SYS_PTRACE", capabilities)
            for capability in capabilities:
                self.assertIn(f"`CAP_{capability}`", PAGE, name)

    def test_the_filter_is_there(self):
        named = re.search(r"seccomp=(\S+?)\"", (FOLDER / "compose.yaml").read_text())[1]
        self.assertTrue((FOLDER / named).is_file(), named)
        self.assertIn(named, (FOLDER / "daemonset.yaml").read_text())


if __name__ == "__main__":
    unittest.main()
