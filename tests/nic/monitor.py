# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's monitor: commands to a running machine, by QMP."""

import json
import socket
import time

from rig import Failure


class Monitor:
    def __init__(self, path, limit=20):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(limit)
        self.connect(path, limit)
        self.lines = self.socket.makefile("r")
        self.events = []
        self.read()  # the greeting
        self.do("qmp_capabilities")

    def connect(self, path, limit):
        end = time.monotonic() + limit
        while True:
            try:
                self.socket.connect(str(path))
                return
            except OSError as error:
                if time.monotonic() > end:
                    raise Failure(f"QEMU's monitor did not come within {limit} s: {error}") from None
                time.sleep(0.05)

    def read(self):
        try:
            line = self.lines.readline()
        except OSError as error:
            raise Failure(f"QEMU's monitor does not answer: {error}") from None
        if not line:
            raise Failure("QEMU has closed its monitor")
        return json.loads(line)

    def do(self, command, **arguments):
        request = {"execute": command}
        if arguments:
            request["arguments"] = arguments
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            answer = self.read()
            if "event" in answer:
                self.events.append(answer)
            elif "error" in answer:
                raise Failure(f"QEMU's {command}: {answer['error']['desc']}")
            else:
                return answer["return"]

    def await_event(self, name, limit):
        """The event of this name that came already, or comes within `limit` seconds."""
        end = time.monotonic() + limit
        while True:
            for event in self.events:
                if event["event"] == name:
                    self.events.remove(event)
                    return event
            if time.monotonic() > end:
                raise Failure(f"QEMU's event {name} did not come within {limit} s")
            self.do("query-status")  # fetches events that have happened meanwhile
            time.sleep(0.1)

    def close(self):
        self.lines.close()
        self.socket.close()
