# SPDX-License-Identifier: BSD-3-Clause
"""The rig itself: it leaves nothing behind when it is interrupted."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from rig import Failure, sh, wait_until

RUN = pathlib.Path(__file__).resolve().parent / "run.py"


def processes_of(pid):
    """Processes whose words contain this run's number, which is in all its names."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:  # it may end at any moment
            words = pathlib.Path("/proc", number, "cmdline").read_bytes()
            words = words.replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"uroce{pid}x" in words or f"uroce-e2e-{pid}-" in words:
            found.append(words.split()[0])
    return found


def traces(pid):
    """What is left of the run with this number."""
    namespaces = [line.split()[0] for line in sh("ip", "netns", "list").splitlines()
                  if line.startswith(f"uroce{pid}x")]
    folders = [path.name for path in pathlib.Path(tempfile.gettempdir()).glob(f"uroce-e2e-{pid}-*")]
    return processes_of(pid) + namespaces + folders


@dataclasses.dataclass
class Interrupted:
    name: str
    number: int
    booted: bool  # whether the guest has booted by then
    quick: bool = False
    roles: tuple = (None,)
    alone = True

    def run(self, build):
        with tempfile.TemporaryFile() as out:
            words = [sys.executable, "-B", "-u", str(RUN), "--build", str(build), "--case",
                     "v4/write_bw-*"]
            other = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                     start_new_session=True)
            try:
                self.await_moment(other, out)
                other.send_signal(self.number)
                try:
                    other.wait(60)
                except subprocess.TimeoutExpired:
                    raise Failure("it did not end within 60 s") from None
            finally:
                if other.poll() is None:
                    other.kill()
                    other.wait()
            try:
                wait_until("the end of everything", 30, lambda: not traces(other.pid), 0.1)
            except Failure:
                raise Failure(f"it left behind: {', '.join(traces(other.pid))}") from None

    def await_moment(self, other, out):
        def said():
            return os.pread(out.fileno(), 1 << 20, 0).decode(errors="replace")

        def moment():
            if other.poll() is not None:
                raise Failure(f"it ended with {other.returncode}: {said()[-200:]}")
            if self.booted:
                return "ok  " in said()
            return any("qemu" in word for word in processes_of(other.pid))
        wait_until("an ok of it" if self.booted else "its guest", 240, moment, 0.1)


def cases():
    yield Interrupted("interrupted/int", signal.SIGINT, True)
    yield Interrupted("interrupted/term", signal.SIGTERM, True)
    yield Interrupted("interrupted/kill", signal.SIGKILL, True)
    yield Interrupted("interrupted/kill-while-it-boots", signal.SIGKILL, False, quick=True)
