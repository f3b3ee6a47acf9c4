#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""
Removes what a killed test leaves behind. Reads lines until the end of its standard input, which
comes when the test's process ends for any reason:

    mark NAME=VALUE                 processes with this in their environment are to be ended
    namespace NAME | folder PATH    to be removed
    done                            the test has removed everything itself
"""

import os
import signal
import sys
import time


def marked(marks):
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as environment:
                if not marks.isdisjoint(environment.read().split(b"\0")):
                    found.add(int(name))
        except OSError:
            pass  # it has ended, or is not ours
    return found


def end_all(marks):
    for number in (signal.SIGTERM, signal.SIGKILL):
        limit = time.monotonic() + 5
        told = set()
        while (left := marked(marks)) and time.monotonic() < limit:
            for pid in left - told:
                try:
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            told |= left
            time.sleep(0.05)


def remove(namespaces, folders):
    import shutil  # only here: most guards have nothing to remove
    import subprocess
    for name in namespaces:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    for path in folders:
        shutil.rmtree(path, ignore_errors=True)


def main():
    marks, namespaces, folders = set(), [], []
    for line in sys.stdin:
        what, _, name = line.rstrip("\n").partition(" ")
        if what == "done":
            return
        if what == "mark":
            marks.add(os.fsencode(name))
        elif what == "namespace":
            namespaces.append(name)
        elif what == "folder":
            folders.append(name)
    if marks:
        end_all(marks)
    remove(namespaces, folders)


if __name__ == "__main__":
    main()
