#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs pairs of unmodified programs with `uroce run` as a user would type them; prints a table."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))

from programs import figures
from rig import Failure

# A single entry runs alone; otherwise a server, and a client that connects to it on 127.0.0.1.
ROWS = [
    "ibv_devinfo -d uroce0",
    "ibv_rc_pingpong -d uroce0 -g 1",
    "ibv_rc_pingpong -d uroce0 -g 1 -e -c",
    "ib_write_bw -d uroce0 -x 1 -F",
    "ib_write_bw -d uroce0 -x 1 -F -s 8 -n 100000",
    "ib_read_bw -d uroce0 -x 1 -F",
    "ib_send_bw -d uroce0 -x 1 -F",
    "ib_atomic_bw -d uroce0 -x 1 -F",
    "ib_write_lat -d uroce0 -x 1 -F -s 8",
    "ib_send_lat -d uroce0 -x 1 -F -s 8",
]
# Server and client that connect through rdma_cm.
CM_ROWS = [
    ("rping -s -a 127.0.0.1 -C 100 -V -p {port}", "rping -c -a 127.0.0.1 -C 100 -V -p {port}"),
    ("ib_send_bw -d uroce0 -R -F -p {port}", "ib_send_bw -d uroce0 -R -F -p {port} 127.0.0.1"),
]
LIMIT = 60  # seconds for each row


def listening(pid, port):
    """Whether the program listens on this TCP port of its namespace."""
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}") as lines:
                if re.search(rf":{port:04X} \S+ 0A ", lines.read()):
                    return True
        except OSError:
            pass
    return False


class Program:
    def __init__(self, uroce, words):
        self.words = words
        self.out = tempfile.TemporaryFile("w+")
        self.popen = subprocess.Popen([uroce, "run", "--", *words], stdout=self.out,
                                      stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def succeed(self):
        try:
            status = self.popen.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.words[0]} did not end within {LIMIT} s") from None
        if status != 0:
            raise Failure(f"{self.words[0]} ended with {status}: {self.text().strip()[-200:]}")
        return self.text()

    def await_listening(self, port):
        end = time.monotonic() + LIMIT
        while not listening(self.popen.pid, port):
            if self.popen.poll() is not None or time.monotonic() > end:
                raise Failure(f"{self.words[0]} does not listen: {self.text().strip()[-200:]}")
            time.sleep(0.01)

    def end(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()


def run_row(uroce, line, port):
    words = line.split()
    if words[0] == "ibv_devinfo":
        text = Program(uroce, words).succeed()
        return re.search(r"state:\s+(\S+)", text)[1] + ", MTU " + \
            re.search(r"active_mtu:\s+(\d+)", text)[1]
    words += ["-p", str(port)]
    server = Program(uroce, words)
    client = None
    try:
        server.await_listening(port)
        client = Program(uroce, [*words, "127.0.0.1"])
        text = client.succeed()
        server.succeed()
    finally:
        server.end()
        if client:
            client.end()
    return figures(words[0], text)


def run_connected(uroce, lines):
    """Nothing outside shows that a server listens, so a client may be refused. Both begin again then, with more time between
    them: perftest listens twice, and a server whose client was refused at the second time waits for ever."""
    end, pause = time.monotonic() + LIMIT, 0
    while True:
        port, client = free_port(), None
        server_words, client_words = (line.format(port=port).split() for line in lines)
        server = Program(uroce, server_words)
        try:
            time.sleep(pause)
            client = Program(uroce, client_words)
            text = client.succeed()
            server.succeed()
            return figures(client_words[0], text) if client_words[0].startswith("ib_") else "connected"
        except Failure:
            refused = client and re.search("REJECTED|Unexpected CM event", client.text(), re.I)
            if not refused or time.monotonic() > end:
                raise
        finally:
            server.end()
            if client:
                client.end()
        pause = max(0.1, 2 * pause)


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    uroce, failed, table = str(build / "apps/uroce"), 0, []
    for line in ROWS:
        print(f"uroce run -- {line}", flush=True)
        try:
            table.append((line, run_row(uroce, line, free_port())))
        except Failure as problem:
            failed += 1
            table.append((line, f"FAILED: {problem}"))
    for lines in CM_ROWS:
        shown = lines[1].format(port="PORT")
        print(f"uroce run -- {shown}", flush=True)
        try:
            table.append((shown, run_connected(uroce, lines)))
        except Failure as problem:
            failed += 1
            table.append((shown, f"FAILED: {problem}"))
    width = max(len(line) for line, _ in table)
    print()
    for line, said in table:
        print(f"{line:{width}}  {said}")
    shown = os.path.relpath(uroce)
    print(f"\nBy hand, in two shells:\n  {shown} run -- ib_write_bw -d uroce0 -x 1 -F\n"
          f"  {shown} run -- ib_write_bw -d uroce0 -x 1 -F 127.0.0.1")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
