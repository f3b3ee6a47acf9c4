# SPDX-License-Identifier: BSD-3-Clause
"""An engine in a folder of its own, for tests of uroced and uroce: $UROCED, $UROCE and $UROCE_PING."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import termios
import time
import unittest

UROCED, UROCE = os.environ["UROCED"], os.environ["UROCE"]
MEMIF = "--vdev=net_memif0,role={},socket={}/memif.sock,socket-abstract=no,bsize=8192"
ENOUGH = 60  # seconds; only bounds a hang


def until(condition, what):
    """The first true result of condition(), which is called until there is one."""
    end = time.monotonic() + ENOUGH
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.01)
    raise AssertionError(f"not within {ENOUGH} s: {what}")


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, words, environment):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(words[0], words, environment)

    def read_until(self, end):
        """The program's output up to this text, and including it."""
        stop = time.monotonic() + ENOUGH
        while end not in self.text:
            left = stop - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"no {end!r} after {self.text!r}")
            try:
                octets = os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                octets = b""
            if not octets:
                raise AssertionError(f"ended before {end!r}: {self.text!r}")
            self.text += octets.decode()
        before, self.text = self.text.split(end, 1)
        return before + end

    def await_raw(self):
        """The program accepts keys from now on: it has printed its first prompt."""
        until(lambda: not termios.tcgetattr(self.fd)[3] & termios.ICANON, "a raw terminal")

    def write(self, text):
        os.write(self.fd, text.encode())

    def status(self):
        """Exit status of the program, once it has ended."""
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class EngineCase(unittest.TestCase):
    """Each test has a folder, and makes engines in it that end with the test."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.socket = str(self.folder / "uroced.sock")
        self.environment = os.environ | {"XDG_RUNTIME_DIR": str(self.folder),
                                         "UROCE_SOCKET": self.socket}
        self.environment.pop("LD_PRELOAD", None)

    def words(self, *options, eal=(), address="10.7.0.1/24"):
        prefix = f"--file-prefix={self.folder.name}-{pathlib.Path(self.socket).stem}"
        return [UROCED, "--no-huge", "--no-shconf", "-m128", prefix, *eal, "--",
                "--ip", address, "--socket", self.socket, *options]

    def start(self, *options, eal=(), address="10.7.0.1/24", **how):
        """An engine that serves."""
        engine = subprocess.Popen(self.words(*options, eal=eal, address=address),
                                  env=self.environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, **how)
        self.addCleanup(self.end, engine)
        line = engine.stdout.readline()
        self.assertRegex(line, "^uroced: serving ")
        return engine

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(ENOUGH)
        finally:
            process.kill()
            for end in (process.stdin, process.stdout, process.stderr):
                if end:
                    end.close()

    def run_uroced(self, *options, eal=(), **how):
        """An engine that is expected to end by itself."""
        return subprocess.run(self.words(*options, eal=eal), env=self.environment, timeout=ENOUGH,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, **how)

    def uroce(self, *words, **how):
        return subprocess.run([UROCE, *words], env=self.environment, timeout=ENOUGH,
                              capture_output=True, text=True, **how)

    def cannot_write(self, name, program, *words):
        """It cannot write what it prints: the disk is full, or standard output is closed."""
        for where, why in (("/dev/full", "No space left on device"), ("&-", "Bad file descriptor")):
            end = self.run_in_shell(f'exec "$@" >{where}', program, *words)
            self.assertEqual((end.returncode, end.stdout, end.stderr),
                             (1, "", f"{name}: standard output: {why}\n"), (words, where))

    def unwritten(self, *words):
        self.cannot_write(" ".join(["uroce", *words[:0 if words[0].startswith("-") else 1]]), UROCE, *words)

    def unwritten_by_uroced(self, *words):
        self.cannot_write("uroced", UROCED, *words)

    def run_in_shell(self, script, *words):
        return subprocess.run(["sh", "-c", script, "sh", *words], env=self.environment, timeout=ENOUGH,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def start_peer(self):
        """An engine at the other end of the first one's memif; its socket."""
        socket, self.socket = self.socket, str(self.folder / "peer.sock")
        self.start("--port", "net_memif0", "--mtu", "4200", address="10.7.0.2/24",
                   eal=[MEMIF.format("client", self.folder)])
        peer, self.socket = self.socket, socket
        return peer

    def pingpong(self, peer, port, count=200):
        """ibv_rc_pingpong between the engine and its peer; what the client says in the end."""
        return self.pair(peer, "ibv_rc_pingpong", "-d", "uroce0", "-g", "1", "-n", str(count),
                         "-p", str(port))

    def writes(self, peer, port, count):
        """ib_write_lat, both of whose ends wait for each other at the end, even if frames are lost."""
        return self.pair(peer, "ib_write_lat", "-d", "uroce0", "-x", "1", "-F", "-n", str(count),
                         "-s", "1024", "-u", "18", "-p", str(port))

    def pair(self, peer, *words):
        for end in (self.socket, peer):  # frames may pass before an engine sees its link
            until(lambda: "PORT_ACTIVE" in self.uroce("run", "--quiet", "--socket", end, "--",
                                                      "ibv_devinfo").stdout, f"the link of {end}")
        server = subprocess.Popen([UROCE, "run", "--quiet", "--", *words], env=self.environment,
                                  stdout=subprocess.DEVNULL)
        self.addCleanup(self.end, server)

        def client():
            end = self.uroce("run", "--quiet", "--socket", peer, "--", *words, "127.0.0.1")
            if "Couldn't connect" not in end.stderr:
                self.assertEqual(end.returncode, 0, end.stderr)
            return end.stdout if end.returncode == 0 else ""

        said = until(client, "the pingpong")  # the server may not listen yet
        self.assertEqual(server.wait(ENOUGH), 0)
        return said

    def ping(self, count=1000000000, **how):
        """A program with a queue pair that sends to itself until the program is ended."""
        program = subprocess.Popen([UROCE, "ping", "--count", str(count), "--interval", "1"],
                                   env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)
        self.addCleanup(self.end, program)
        return program


def numbers_hidden(text):
    """Numbers differ from run to run."""
    text = re.sub(r"0x[0-9a-f]+", "N", text)
    text = re.sub(r"\d+", "N", text)
    return re.sub(r"[ ]+", " ", text).strip()
