# SPDX-License-Identifier: BSD-3-Clause
"""An engine on this host and one on the emulated card of a guest, and programs on both."""

import dataclasses
import typing

import rig as rigs
from nic_guest import NicGuest
from programs import GID, figures
from rig import Failure

OURS = ("10.7.0.1", "fd07::1")
THEIRS = ("10.7.0.2", "fd07::2")  # of the card
CONTROL = ("10.8.0.1", "10.8.0.2")  # of the host and the guest, for the programs' own connection
LARGEST = 9000


@dataclasses.dataclass(frozen=True)
class Setup:
    """How the guest's engine is started. No mtu: without --mtu."""
    mtu: int = 0
    lcores: str = "0"
    addresses: str = "10.7.0.2/24,fd07::2/64"
    options: tuple = ()


@dataclasses.dataclass
class Wire:
    rig: typing.Any
    guest: NicGuest
    ours: tuple = OURS
    theirs: tuple = THEIRS
    side: str = "a"
    linux: typing.Any = None  # another guest with rxe, once a case has needed it

    @property
    def nic(self):
        return self.guest.card.nic

    @property
    def tap(self):
        return self.guest.card.tap

    def choose(self, index):
        """From now on the host's engine is at the other end of this card's cable."""
        self.guest.end_engine()
        engine = self.rig.engines.pop("a", None)
        if engine:
            engine.end()
        for card in self.guest.cards:
            self.rig.ip("a", "address", "flush", "dev", card.tap, "scope", "global")
        self.guest.card = self.guest.cards[index]
        self.rig.ip("a", "link", "set", self.tap, "mtu", str(LARGEST))
        for address, length in zip(OURS, (24, 64)):
            self.rig.ip("a", "address", "add", f"{address}/{length}", "dev", self.tap,
                        *(["nodad"] if ":" in address else []))
        self.rig.engine("a", options=["--netdev", self.tap])

    def use(self, setup):
        """Makes sure that an engine with this setup runs in the guest; None: that none does."""
        if setup is None:
            self.guest.end_engine()
            return
        self.rig.ip("a", "link", "set", self.tap, "mtu", str(setup.mtu or 1500))
        if not self.guest.has(setup):
            self.guest.end_engine()
            self.guest.start_engine(setup)

    def pair(self, line, family="v4", role="server", limit=120, side="a"):
        """Runs a program at both ends; `role` is the guest's. Returns what the client printed and the server."""
        words = line.split()
        port = self.rig.port()
        if words[0].endswith("_pingpong"):
            extra = ["-d", "uroce0", "-g", GID[family], "-p", str(port)]
        else:
            extra = ["-d", "uroce0", "-x", GID[family], "-F", "-p", str(port)]
            if "-u" not in words:
                extra += ["-u", "20"]  # four seconds: a guest may be slow
        words = [words[0], *extra, *words[1:]]
        if role == "server":
            return self.server_in_guest(words, port, limit, side)
        return self.client_in_guest(words, port, limit, side)

    def server_in_guest(self, words, port, limit, side):
        number = self.guest.verbs(words)
        self.guest.listens(port, number)
        client = self.rig.program(side, [*words, CONTROL[1]], name=f"{words[0]}-client")
        try:
            text = client.succeed(limit)
        except Failure as failure:
            raise Failure(f"{failure} (in the guest: {self.guest.said(number)})") from None
        finally:
            client.end()
        return text, self.succeed(number, words[0], 30)

    def client_in_guest(self, words, port, limit, side):
        server = self.rig.program(side, words, name=f"{words[0]}-server")
        try:
            server.await_listening(port)
            number = self.guest.verbs([*words, CONTROL[0]])
            try:
                text = self.succeed(number, words[0], limit)
            except Failure as failure:
                raise Failure(f"{failure} (here: {server.tail()})") from None
            return text, server.succeed(30)
        finally:
            server.end()

    def succeed(self, number, name, limit):
        status, output = self.guest.finish(number, limit)
        if status != 0:
            raise Failure(f"in the guest, {name} ended with {status}: {output.strip()[-200:]}")
        return output

    def measured(self, line, family="v4", role="server", limit=120, side="a"):
        """The figures of a pair, as text. Programs that check the data must find it right."""
        texts = self.pair(line, family, role, limit, side)
        if any("invalid data" in text for text in texts):
            raise Failure(f"{line}: it received wrong data")
        return figures(line.split()[0], texts[0])


def open_wire(build, nics):
    """A namespace with a tap for control, and another one with the cables of all cards."""
    rig = rigs.Rig(build)
    try:
        rig.namespace("a")
        rigs.sh(*rig.inside("a"), "ip", "tuntap", "add", "ctl0", "mode", "tap")
        rig.ip("a", "link", "set", "ctl0", "up")
        rig.ip("a", "address", "add", f"{CONTROL[0]}/24", "dev", "ctl0")
        for index, nic in enumerate(nics):
            many = ["multi_queue"] if nic.queues > 1 else []
            rigs.sh(*rig.inside("a"), "ip", "tuntap", "add", f"nic{index}", "mode", "tap", *many)
            rig.ip("a", "link", "set", f"nic{index}", "up")
        return Wire(rig, NicGuest(rig, nics, "ctl0", CONTROL[1], build / "interop"))
    except BaseException:
        rig.close()
        raise


def tidy(wire):
    """After a failure: kills all programs and makes sure that the guest runs."""
    wire.rig.check_healthy()
    for process in wire.rig.processes:
        if process.name != "guest" and process not in wire.rig.engines.values():
            process.end()
    wire.guest.tidy()
    if wire.linux:  # it cannot be reached now; the next case that needs it boots another one
        wire.linux.vanish()
        wire.linux = None
        wire.rig.ip("a", "link", "del", "linux0")
    wire.guest.engine = None  # one of the programs failed


