#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Words that a real, interactive bash completes. $UROCE, $UROCED: the programs; $COMPLETION: the file."""

import os
import pathlib
import pty
import re
import select
import shutil
import tempfile
import termios
import time
import unittest

LIMIT = 30


class Shell:
    """A bash on a terminal, with the programs in its PATH."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-completion-"))
        for name in ("UROCE", "UROCED"):
            (self.folder / name.lower()).symlink_to(os.environ[name])
        env = {"PATH": f"{self.folder}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "",
               "INPUTRC": "/dev/null", "HOME": str(self.folder)}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], env)
        self.send("bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; PS1='> '; "
                  f"stty -echo; . {os.environ['COMPLETION']}; echo rea''dy\n")
        self.await_text(r"ready\r\n")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def await_text(self, pattern):
        text, until = "", time.monotonic() + LIMIT
        while True:
            found = re.search(pattern, text)
            if found:
                return found
            ready, _, _ = select.select([self.terminal], [], [], until - time.monotonic())
            if not ready:
                raise AssertionError(f"no '{pattern}' in {text!r}")
            text += os.read(self.terminal, 4096).decode(errors="replace")

    def complete(self, line):
        """The line as bash has it after a TAB; bash reads keys when its terminal is raw."""
        until = time.monotonic() + LIMIT
        while termios.tcgetattr(self.terminal)[3] & termios.ICANON and time.monotonic() < until:
            time.sleep(0.01)
        self.send(f"\x15{line}\t\x0f")
        return self.await_text(r"END-OF-LINE<(.*?)>")[1]

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)
        shutil.rmtree(self.folder)


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()
        cls.addClassCleanup(cls.shell.end)
        cls.shell.send("bind -x '\"\\C-o\": printf \"END-OF-LINE<%s>\\n\" \"$READLINE_LINE\"'\n")

    def becomes(self, line, wanted):
        self.assertEqual(self.shell.complete(line), wanted)

    def test_commands(self):
        self.becomes("uroce st", "uroce stat ")
        self.becomes("uroce pi", "uroce ping ")
        self.becomes("uroce doc", "uroce doctor ")

    def test_options(self):
        self.becomes("uroce stat --js", "uroce stat --json ")
        self.becomes("uroce run --qu", "uroce run --quiet ")
        self.becomes("uroced -- --exit-w", "uroced -- --exit-when-idle ")
        self.becomes("uroced --no-hu", "uroced --no-huge ")

    def test_values(self):
        self.becomes("uroced -- --idle ad", "uroced -- --idle adaptive ")
        self.becomes("uroced -- --confine of", "uroced -- --confine off ")
        self.becomes("uroced -- --offload ipv", "uroced -- --offload ipv4-cksum ")
        self.becomes("uroced -- --offload vlan,ipv", "uroced -- --offload vlan,ipv4-cksum ")
        self.becomes("uroced -- --netdev l", "uroced -- --netdev lo ")
        self.becomes("uroce doctor --port l", "uroce doctor --port lo ")

    def test_programs_to_run(self):
        self.becomes("uroce run -- mkfif", "uroce run -- mkfifo ")

    def test_nothing_fits(self):
        self.becomes("uroce nonsen", "uroce nonsen")
        self.becomes("uroce stat --nonsen", "uroce stat --nonsen")


if __name__ == "__main__":
    unittest.main()
