#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroced as a service: the unit files, what the service manager hears, a restart after kill -9."""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import unittest

from engine_rig import ENOUGH, UROCED, EngineCase, until

CONFIG = pathlib.Path(__file__).resolve().parents[3] / "config"
UNITS = ("uroced.service", "uroced@.service")
BUILT = pathlib.Path(os.environ["UNITS"])  # the folder of the units, made for this prefix


class Units(EngineCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_verify(self):
        """With the built program in the place of the installed one: verify looks for it."""
        for name in UNITS:
            text, n = re.subn(r"^(ExecStart=)\S+/uroced ", rf"\g<1>{UROCED} ",
                              (BUILT / name).read_text(), flags=re.MULTILINE)
            self.assertEqual(n, 1, name)
            unit = self.folder / name.replace("@", "@one")
            unit.write_text(text)
            end = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)],
                                 capture_output=True, text=True, timeout=ENOUGH)
            self.assertEqual((end.returncode, end.stderr), (0, ""), name)


class Manager(EngineCase):
    """What stands in the place of systemd."""

    def setUp(self):
        super().setUp()
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.settimeout(ENOUGH)
        self.manager.bind(str(self.folder / "notify"))
        self.environment |= {"NOTIFY_SOCKET": str(self.folder / "notify")}

    def heard(self):
        return self.manager.recv(256).decode()

    def test_exec_start_as_written(self):
        """Of each unit, with this test's folders in the place of the system's."""
        for name in UNITS:
            line = re.search(r"^ExecStart=(.*)$", (BUILT / name).read_text(), re.MULTILINE)[1]
            line = re.sub(r"^\S+/uroced ", f"{UROCED} ", line).replace("%i", "one")
            (self.folder / "etc").mkdir(exist_ok=True)
            line = line.replace("/etc/uroce/", f"{self.folder}/etc/")
            line = re.sub(r"/run/uroce(-one)?/", f"{self.folder}/", line)
            for conf in ("uroced.conf", "one.conf"):
                shutil.copy(CONFIG / "uroced.conf", self.folder / "etc" / conf)
            eal = f"--no-huge -m128 --file-prefix={self.folder.name}"
            words = [part for word in shlex.split(line)
                     for part in (eal.split() if word == "$UROCED_EAL" else [word])]
            engine = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.addCleanup(self.end, engine)
            self.assertEqual(self.heard(), "READY=1", name)
            self.assertEqual(self.uroce("stat").returncode, 0)
            engine.send_signal(signal.SIGTERM)
            self.assertEqual(self.heard(), "STOPPING=1")
            self.assertEqual(engine.wait(ENOUGH), 0)

    def test_watchdog(self):
        self.environment |= {"WATCHDOG_USEC": "100000"}
        self.start()
        self.assertEqual(self.heard(), "READY=1")
        for _ in range(3):
            self.assertEqual(self.heard(), "WATCHDOG=1")

    def test_no_manager_listens(self):
        self.manager.close()
        os.unlink(self.folder / "notify")
        self.start()
        self.assertEqual(self.uroce("stat").returncode, 0)


class Restart(EngineCase):
    def test_after_kill(self):
        """The programs of the killed engine end; the next engine serves at the same socket."""
        engine = self.start()
        program = self.ping()
        until(lambda: json.loads(self.uroce("stat", "--json", "--qps").stdout), "queue pairs")
        engine.kill()
        self.assertNotEqual(program.wait(ENOUGH), 0, "its engine is gone")
        self.start()
        self.assertEqual(self.uroce("ping", "--count", "10").returncode, 0)
        self.assertEqual(json.loads(self.uroce("stat", "--json", "--programs").stdout), [])

    def test_a_second_engine_is_told_who_serves(self):
        engine = self.start()
        end = self.run_uroced()
        self.assertEqual(end.returncode, 1)
        self.assertEqual(end.stderr, f"uroced: --socket {self.socket}: another engine (process "
                         f"{engine.pid}) serves it: use or stop that engine, or choose another "
                         "path\n")
        self.assertEqual(self.uroce("stat").returncode, 0)


if __name__ == "__main__":
    unittest.main()
