# SPDX-License-Identifier: BSD-3-Clause
"""Packet loss and packet captures in the guest."""

import collections
import contextlib
import json
import re
import signal

from rig import Failure, wait_until

Packet = collections.namedtuple(
    "Packet", "source opcode qpn psn migrated ack sport checksum syndrome msn length reth")


def lossy(guest, percent, directions=("in", "out")):
    """Packets that the guest sends, receives, or both are lost. Yields their count."""
    return impaired(guest, ["loss", f"{percent}%"], directions)


@contextlib.contextmanager
def impaired(guest, words, directions=("in", "out")):
    """netem in the guest does this with packets that it sends, receives, or both. Yields the count of
    those that it dropped."""
    def tc(*words):
        return guest.run(["tc", *words])

    devices = {"out": "eth0", "in": "loss0"}
    netem = ["root", "netem", "limit", "100000", *words]
    try:
        if "in" in directions:
            guest.run(["ip", "link", "add", "loss0", "mtu", str(guest.mtu), "type", "ifb"])
            guest.run(["ip", "link", "set", "loss0", "up"])
            tc("qdisc", "add", "dev", "eth0", "ingress")
            tc("filter", "add", "dev", "eth0", "parent", "ffff:", "matchall", "action", "mirred",
               "egress", "redirect", "dev", "loss0")
        for direction in directions:
            tc("qdisc", "add", "dev", devices[direction], *netem)
        yield lambda: sum(
            int(re.search(r"netem.*?dropped (\d+)",
                          tc("-s", "qdisc", "show", "dev", devices[direction]), re.S)[1])
            for direction in directions)
    finally:
        for words in (["tc", "qdisc", "del", "dev", "eth0", "root"],
                      ["tc", "qdisc", "del", "dev", "eth0", "ingress"],
                      ["ip", "link", "del", "loss0"]):
            guest.run(words, check=False)


class Capture:
    """Captures RoCEv2 packets on the guest's interface during the with statement."""

    def __init__(self, guest):
        self.guest = guest
        self.packets = []

    def __enter__(self):
        self.file = f"/tmp/capture-{self.guest.rig.port()}"
        self.number = self.guest.start(["/usr/bin/python3", "-B", str(self.guest.here / "capture.py"),
                                        "eth0", self.file])
        wait_until("the capture in the guest", 30,
                   lambda: "captures" in self.guest.output(self.number)[1], 0.05)
        return self

    def __exit__(self, kind, value, trace):
        self.guest.signal(self.number, signal.SIGTERM)
        status, output = self.guest.finish(self.number, 60)
        if kind is not None:
            return
        if status != 0:
            raise Failure(f"the capture in the guest ended with {status}: {output[-200:]}")
        for line in self.guest.run(["cat", self.file]).splitlines():
            self.packets.append(Packet(*json.loads(line)))
        self.guest.run(["rm", self.file])
