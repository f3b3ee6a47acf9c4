# SPDX-License-Identifier: BSD-3-Clause
"""The two ends of the wire, with the same interface for programs that run on either."""

import json
import os
import re
import signal

from rig import Failure, wait_until


class Ours:
    name = "ours"

    def __init__(self, wire):
        self.rig = wire.rig
        self.side = wire.side
        self.addresses = wire.ours

    def start(self, words):
        return self.rig.program(self.side, words, name=os.path.basename(words[0]))

    def finish(self, program, limit):
        """(status, output)"""
        try:
            return program.wait(limit), program.output()
        finally:
            program.end()

    def output(self, program):
        """(status or None, output so far)"""
        return program.popen.poll(), program.output()

    def stop(self, program, number=signal.SIGTERM):
        program.signal(number)
        return self.finish(program, 10)

    def listens(self, program, port):
        return any(id["state"] == "LISTEN" and id["pid"] == program.pid and
                   id["source"]["port"] == port for id in self.rig.connection_ids(self.side))

    def objects(self):
        """The number of objects of each kind."""
        counted = self.rig.statistics(self.side)
        return {key: counted[key] for key in ("clients", "qps", "cqs", "mrs", "connections")} | {
            "cm_id": len(self.rig.connection_ids(self.side))}

    def at_rest(self):
        """The objects once earlier connections have left TIMEWAIT."""
        wait_until("the end of earlier connections", 120,
                   lambda: self.objects()["connections"] == 0, 0.2)
        return self.objects()


class Theirs:
    name = "theirs"

    def __init__(self, wire):
        self.guest = wire.guest
        self.addresses = wire.theirs

    def start(self, words):
        return self.guest.start(words)

    def finish(self, number, limit):
        return self.guest.finish(number, limit)

    def output(self, number):
        return self.guest.output(number)

    def stop(self, number, with_what=signal.SIGTERM):
        self.guest.signal(number, with_what)
        return self.guest.finish(number, 10)

    def listens(self, number, port):
        ids = json.loads(self.guest.run(["rdma", "-j", "resource", "show", "cm_id"]))
        return any(id.get("state") == "LISTEN" and str(id.get("src-port", id.get("src-addr", "")))
                   .endswith(str(port)) for id in ids)

    def objects(self):
        line = self.guest.run(["rdma", "resource", "show"])
        return {key: int(count) for key, count in re.findall(r"(\w+) (\d+)", line.split(":", 1)[1])}


def ends(wire, role):
    """(server's end, client's end), with uroce in this role."""
    ours, theirs = Ours(wire), Theirs(wire)
    return (theirs, ours) if role == "client" else (ours, theirs)


def await_listener(end, handle, port, limit=30):
    """Waits until the server listens at this port; the guest's list does not say whose it is."""
    def listening():
        status, output = end.output(handle)
        if status is not None:
            raise Failure(f"{end.name}: the server ended with {status} before it listened: "
                          f"{output.strip()[-200:]}")
        return end.listens(handle, port)
    wait_until(f"a listener on port {port}, {end.name}", limit, listening, 0.05)
