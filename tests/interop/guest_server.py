# SPDX-License-Identifier: BSD-3-Clause
"""Executes programs in the guest: one JSON question a TCP connection, one JSON answer.

    {"run": WORDS, "limit": S}     -> {"status", "output"}
    {"start": WORDS}               -> {"number"}
    {"finish": NUMBER, "limit": S} -> {"status", "output"}; a program that takes longer is ended
    {"listens": PORT}              -> {"listens"}

`guest_server.py ask ADDRESS` sends what stands on its standard input and prints the answer.
"""

import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile

PORT = 7471
programs = {}


def start(words):
    out = tempfile.TemporaryFile()
    program = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=subprocess.STDOUT, start_new_session=True)
    number = len(programs) + 1
    programs[number] = (program, out)
    return number


def finish(number, limit):
    program, out = programs[number]
    try:
        status = program.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        status = "timeout"
    out.seek(0)
    return {"status": status, "output": out.read().decode(errors="replace")}


def listens(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as lines:
            for line in lines:
                word = line.split()
                if word[1].endswith(f":{port:04X}") and word[3] == "0A":
                    return True
    return False


def answer(question):
    if "run" in question:
        return finish(start(question["run"]), question["limit"])
    if "start" in question:
        return {"number": start(question["start"])}
    if "finish" in question:
        return finish(question["finish"], question["limit"])
    return {"listens": listens(question["listens"])}


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            reply = answer(json.loads(self.rfile.readline()))
        except (OSError, KeyError, ValueError) as error:
            reply = {"status": "error", "output": f"{type(error).__name__}: {error}"}
        self.wfile.write(json.dumps(reply).encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def ask(address):
    with socket.create_connection((address, PORT), 20) as connection:
        connection.settimeout(None)
        connection.sendall(sys.stdin.read().encode() + b"\n")
        print(connection.makefile().readline(), end="")


if __name__ == "__main__":
    if sys.argv[1:2] == ["ask"]:
        ask(sys.argv[2])
    else:
        os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        server = Server(("", PORT), Handler)
        print("guest server serves", flush=True)
        server.serve_forever()
