#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Where uroced serves without --socket, and that programs of the same user find it there."""

import os
import pathlib
import shutil
import subprocess
import unittest

from engine_rig import ENOUGH, UROCE, UROCED, EngineCase

USER = 60000 + os.getpid() % 5000  # who has no account, no process and no file
OTHER = USER + 5000
OWN_RUN = 'mount -t tmpfs -o mode=755 none /run && exec "$@"'


@unittest.skipUnless(os.geteuid() == 0, "other users need root")
class DefaultSocket(EngineCase):
    def setUp(self):
        super().setUp()
        self.environment = {"PATH": os.environ["PATH"]}
        self.who = {"user": USER, "group": USER, "extra_groups": [], "cwd": "/", "env": self.environment}

    def folder_of(self, path, owner=USER, mode=0o700):
        path = pathlib.Path(path)
        path.mkdir(mode)
        self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        os.chown(path, owner, owner)
        return path

    def serve(self):
        """The path that uroced names, once it serves; a program of the same user says what it finds."""
        engine = subprocess.Popen([UROCED, "--no-huge", "--no-shconf", "-m128", "--", "--ip", "10.7.0.1/24"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, **self.who)
        self.addCleanup(self.end, engine)
        line = ""
        while not line.startswith("uroced: serving "):
            line = engine.stdout.readline()
            self.assertNotEqual(line, "", "it ended before it served")
        found = subprocess.run([UROCE, "stat"], capture_output=True, text=True, timeout=ENOUGH, **self.who)
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        self.assertIn("10.7.0.1", found.stdout)
        return pathlib.Path(line.split(" on ")[1].strip())

    def refused(self, folder):
        end = subprocess.run([UROCED, "--no-huge", "--no-shconf", "-m128", "--", "--ip", "10.7.0.1/24"],
                             capture_output=True, text=True, timeout=ENOUGH, stdin=subprocess.DEVNULL, **self.who)
        self.assertEqual(end.returncode, 1, end.stdout)
        self.assertIn(f"uroced: {folder}: Operation not permitted: choose another path with --socket\n",
                      end.stdout + end.stderr)

    def test_runtime_folder(self):
        self.environment["XDG_RUNTIME_DIR"] = str(self.folder_of(self.folder / "run"))
        self.folder.chmod(0o755)
        path = self.serve()
        self.assertEqual(path, self.folder / "run/uroce/uroced.sock")
        self.assertEqual((path.parent.stat().st_mode & 0o777, path.stat().st_uid), (0o700, USER))

    def test_a_runtime_folder_that_is_too_long(self):
        self.folder.chmod(0o755)
        start = (self.folder / "long").as_posix()
        folder = start + (108 - len("/uroce/uroced.sock") - len(start)) * "g"
        self.environment["XDG_RUNTIME_DIR"] = str(self.folder_of(folder))
        end = subprocess.run([UROCE, "stat"], capture_output=True, text=True, timeout=ENOUGH, **self.who)
        self.assertEqual(end.returncode, 1)
        self.assertEqual(end.stderr, f"uroce stat: $XDG_RUNTIME_DIR is too long: {folder}/uroce/uroced.sock: "
                                     "a socket path is limited to 107 octets\n")

    def test_without_a_runtime_folder(self):
        folder = pathlib.Path(f"/tmp/uroce-{USER}")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.assertEqual(self.serve(), folder / "uroced.sock")
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)

    def test_a_folder_of_somebody_else(self):
        """Anybody may make it in /tmp first. Its owner could put another socket there."""
        folder = self.folder_of(f"/tmp/uroce-{USER}", OTHER, 0o777)
        self.refused(folder)
        self.assertEqual(list(folder.iterdir()), [])

    def test_a_link_to_a_folder(self):
        to, link = self.folder_of(self.folder / "to"), pathlib.Path(f"/tmp/uroce-{USER}")
        self.folder.chmod(0o755)
        link.symlink_to(to)
        self.addCleanup(link.unlink)
        self.refused(link)
        self.assertEqual(list(to.iterdir()), [])

    def test_of_root(self):
        self.who = {"env": self.environment}
        script = ('"$1" --no-huge --no-shconf -m128 -- --ip 10.7.0.1/24 & engine=$!; '
                  'until [ -S /run/uroce/uroced.sock ] || ! kill -0 $engine; do sleep 0.05; done; '
                  '"$2" stat; status=$?; stat -c %a /run/uroce; kill $engine; wait $engine; exit $status')
        end = subprocess.run(["unshare", "--mount", "sh", "-c", OWN_RUN, "sh", "sh", "-c", script, "sh", UROCED, UROCE],
                             capture_output=True, text=True, timeout=ENOUGH, **self.who)
        self.assertEqual(end.returncode, 0, end.stdout + end.stderr)
        self.assertIn("10.7.0.1", end.stdout)
        self.assertIn("\n755\n", end.stdout)


if __name__ == "__main__":
    unittest.main()
