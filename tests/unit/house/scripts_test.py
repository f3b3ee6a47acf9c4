#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrong words behind ./check and ./try: one line, before anything is installed, built or run. And where the files of
a command are that ./check runs in memory.
"""

import os
import pathlib
import runpy
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Wrong(unittest.TestCase):
    def test_what_there_is_not(self):
        for words, says in (
                (["./check", "nonsense"], "check: there is no step 'nonsense': must be of format release sim "),
                (["./check", "format", "-x"], "check: there is no step '-x': must be of format release sim "),
                (["./check", "--long", "nonsense"], "check --long: there is no part 'nonsense': must be of packages "),
                (["./check", "--long", "dist", "x"], "check --long: there is no part 'x': must be of packages "),
                (["./try", "--nonsense"], "try: '--nonsense': it takes no options")):
            end = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            self.assertEqual((end.returncode, end.stdout), (2, ""), words)
            self.assertTrue(end.stderr.startswith(says), end.stderr)
            self.assertEqual(end.stderr.count("\n"), 1, end.stderr)


# Stands in for uroce. The first client is refused, and its server then waits for ever.
REFUSES = """#!/bin/sh
cd "$(dirname "$0")"
case $3 in
server) until [ -e "$4.done" ] && [ ! -e "$4.spoilt" ]; do sleep 0.01; done ;;
client) touch "$4.done"
	[ -e refused ] || { touch refused "$4.spoilt"; echo "Event: RDMA_CM_EVENT_REJECTED; error: 8."; exit 1; } ;;
esac
"""


class Try(unittest.TestCase):
    def test_a_refused_client_begins_again_with_its_server(self):
        script = runpy.run_path(str(ROOT / "scripts/try.py"))
        with tempfile.TemporaryDirectory() as folder:
            uroce = pathlib.Path(folder) / "uroce"
            uroce.write_text(REFUSES)
            uroce.chmod(0o755)
            said = script["run_connected"](str(uroce), ("server {port}", "client {port}"))
            self.assertEqual((said, (uroce.parent / "refused").exists()), ("connected", True))


class InMemory(unittest.TestCase):
    SCRIPT = ROOT / "scripts/in_memory.sh"

    @unittest.skipUnless(os.geteuid() == 0, "mounts need root")
    def test_files_go_away_with_the_command(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            name = pathlib.Path(folder).name
            script = "stat -f -c %T /tmp /var/run/dpdk; stat -c %a /tmp; pwd; ls /tmp; touch kept /tmp/lost-$$; echo $$; exit 3"
            end = subprocess.run([self.SCRIPT, "sh", "-c", script], cwd=folder, stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=60)
            self.assertEqual((end.returncode, end.stderr), (3, ""))
            *said, pid = end.stdout.split()
            self.assertEqual(said, ["tmpfs", "tmpfs", "1777", folder, name])
            self.assertEqual(os.listdir(folder), ["kept"])  # the folder itself may be below /tmp
            self.assertFalse(os.path.exists(f"/tmp/lost-{pid}"))

    def test_without_root_the_command_runs_all_the_same(self):
        how = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        # on stdin, because the checkout may be in a folder of root alone
        end = subprocess.run(["bash", "-s", "--", "sh", "-c", "pwd; exit 4"], cwd="/", input=self.SCRIPT.read_text("utf-8"),
                             capture_output=True, text=True, timeout=60, **how)
        self.assertEqual((end.returncode, end.stdout, end.stderr), (4, "/\n", ""))


if __name__ == "__main__":
    unittest.main()
