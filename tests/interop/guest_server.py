# SPDX-License-Identifier: BSD-3-Clause
"""Executes programs in the guest: one JSON request and one JSON answer per TCP connection.

    {"run": WORDS, "limit": S}     -> {"status", "output"}
    {"start": WORDS, "env": MORE}  -> {"number"}; `env` may be left out
    {"finish": NUMBER, "limit": S} -> {"status", "output"}; a program that takes longer is killed
    {"signal": NUMBER, "with": N}  -> {"status": 0}
    {"output": NUMBER}             -> {"status", "output"} so far; no status: it is running
    {"threads": NUMBER}            -> {"output"}: where the threads of a program that runs stand
    {"listens": PORT}              -> {"listens"}
    {"end all": true}              -> {"status": 0}: kills all running programs
"""

import fcntl
import json
import os
import signal
import socketserver
import subprocess
import threading

PORT = 7471
ENDS_WITHIN = 10  # seconds: a program that was killed, unless the kernel holds it
programs = {}


def file_in_memory():
    """Without the module tempfile: emulated, loading what that needs takes a second of each boot. Linux does not lock
    the position in a file of memfd_create(): of two threads that write at once, one would overwrite the other's line.
    With O_APPEND each line comes behind what is there."""
    file = open(os.memfd_create("output"), "r+b", 0)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
    return file


class Program(subprocess.Popen):
    """Has a file for its output as long as it runs: a guest executes thousands of programs."""

    def __init__(self, words, env=None):
        self.file, self.text, self.lock = file_in_memory(), "", threading.Lock()
        try:
            super().__init__(words, stdin=subprocess.DEVNULL, stdout=self.file,
                             stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, **(env or {})})
        except OSError:
            self.file.close()
            raise

    def said(self):
        """The whole output."""
        with self.lock:
            if self.file is None:
                return self.text
            ended = self.poll() is not None
            size = os.fstat(self.file.fileno()).st_size
            text = os.pread(self.file.fileno(), size, 0).decode(errors="replace")
            if ended:
                self.file.close()
                self.file, self.text = None, text
            return text


def start(words, env=None):
    program = Program(words, env)
    number = len(programs) + 1
    programs[number] = program
    return number


def output(number):
    status = programs[number].poll()
    return {"status": status, "output": programs[number].said()}


def end_with(number, number_of_signal):
    try:
        os.killpg(programs[number].pid, number_of_signal)
    except ProcessLookupError:
        pass
    return {"status": 0}


def finish(number, limit):
    program = programs[number]
    try:
        status = program.wait(limit)
    except subprocess.TimeoutExpired:
        status = "timeout"
        os.killpg(program.pid, signal.SIGKILL)
        try:
            program.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            stuck = f"it was killed and does not end; its threads: {threads(number)['output']}"
            return {"status": status, "output": f"{program.said()} / {stuck}"}
    return {"status": status, "output": program.said()}


def threads(number):
    """The name of each thread, its state, and the kernel's function in which it waits (0: none)."""
    folder, found = f"/proc/{programs[number].pid}/task", []
    for thread in sorted(os.listdir(folder), key=int):
        with open(f"{folder}/{thread}/stat") as stat, open(f"{folder}/{thread}/wchan") as place:
            name, _, rest = stat.read().partition("(")[2].rpartition(")")
            found.append(f"{name} {rest.split()[0]} {place.read()}")
    return {"output": ", ".join(found)}


def end_all():
    for number, program in list(programs.items()):
        if program.poll() is None:
            end_with(number, signal.SIGKILL)
            program.wait(ENDS_WITHIN)
    return {"status": 0}


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
        return {"number": start(question["start"], question.get("env"))}
    if "finish" in question:
        return finish(question["finish"], question["limit"])
    if "signal" in question:
        return end_with(question["signal"], question["with"])
    if "output" in question:
        return output(question["output"])
    if "threads" in question:
        return threads(question["threads"])
    if "end all" in question:
        return end_all()
    return {"listens": listens(question["listens"])}


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            reply = answer(json.loads(self.rfile.readline()))
        except (OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
            reply = {"status": "error", "output": f"{type(error).__name__}: {error}"}
        self.wfile.write(json.dumps(reply).encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    server = Server(("", PORT), Handler)
    print("guest server serves", flush=True)
    server.serve_forever()
