# SPDX-License-Identifier: BSD-3-Clause
"""Running the programs of apps/examples. $EXAMPLES: name=path of each program, $VERBS: the folders of
the drop-in libraries for those that do not find them by themselves."""

import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAMS = dict(word.split("=", 1) for word in os.environ.get("EXAMPLES", "").split())
LIMIT = 60


def eal(tag, memory=256):
    """Words for an EAL of the test's own, on any processor."""
    return ["--no-huge", f"-m{memory}", "--no-pci", "--no-telemetry", "--log-level=*:error",
            f"--file-prefix=uroce-example-{tag}-{os.getpid()}"]


def environment(**more):
    env = dict(os.environ, **more)
    env.setdefault("UROCE_SOCKET", "/nonexistent")
    if os.environ.get("VERBS"):
        env["LD_LIBRARY_PATH"] = os.environ["VERBS"]
    return env


def run(name, *words, prefix=(), limit=LIMIT, **more):
    """The program's output; fails the test if its status is not 0."""
    done = subprocess.run([*prefix, PROGRAMS[name], *words], env=environment(**more), timeout=limit,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{name} {' '.join(words)}: status {done.returncode}: {done.stdout}")
    return done.stdout


class Program:
    """One that runs beside the test."""

    def __init__(self, name, *words, prefix=(), **more):
        self.name = name
        self.process = subprocess.Popen([*prefix, PROGRAMS.get(name, name), *words],
                                        env=environment(**more), stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.text = ""

    def read(self):
        octets = os.read(self.process.stdout.fileno(), 65536)
        self.text += octets.decode(errors="replace")
        return bool(octets)

    def await_text(self, wanted, limit=LIMIT):
        until = time.monotonic() + limit
        while wanted not in self.text:
            ready, _, _ = select.select([self.process.stdout], [], [], until - time.monotonic())
            if not ready or not self.read():
                raise AssertionError(f"{self.name} does not say '{wanted}': {self.text}")

    def end(self, how=signal.SIGTERM):
        """Its status; everything that it said is in `text` then."""
        if self.process.poll() is None and how is not None:
            self.process.send_signal(how)
        try:
            rest, _ = self.process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            rest, _ = self.process.communicate()
            raise AssertionError(f"{self.name} does not end: {self.text}") from None
        self.text += rest.decode(errors="replace")
        return self.process.returncode


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-example-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def begin(self, name, *words, **more):
        program = Program(name, *words, **more)
        self.addCleanup(program.end, signal.SIGKILL)
        return program
