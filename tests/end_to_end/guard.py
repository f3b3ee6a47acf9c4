#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Removes what a killed test leaves behind. Reads lines until the end of its standard input, which
comes when the test's process ends for any reason:

    process PID | namespace NAME | folder PATH      to be removed
    done                                            the test has removed everything itself
"""

import os
import shutil
import signal
import subprocess
import sys
import time


def began(pid):
    """When the process began, so that a reused pid is noticed."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[19]
    except OSError:
        return None


def end_all(processes):
    for number in (signal.SIGTERM, signal.SIGKILL):
        limit = time.monotonic() + 5
        alive = {pid for pid, at in processes.items() if began(pid) == at}
        for pid in alive:
            try:
                os.killpg(pid, signal.SIGCONT)
                os.killpg(pid, number)
            except ProcessLookupError:
                pass
        while alive and time.monotonic() < limit:
            alive = {pid for pid in alive if began(pid) == processes[pid]}
            time.sleep(0.05)


def main():
    processes, namespaces, folders = {}, [], []
    for line in sys.stdin:
        what, _, name = line.rstrip("\n").partition(" ")
        if what == "done":
            return
        if what == "process" and began(int(name)) is not None:
            processes[int(name)] = began(int(name))
        elif what == "namespace":
            namespaces.append(name)
        elif what == "folder":
            folders.append(name)
    end_all(processes)
    for name in namespaces:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    for path in folders:
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    main()
