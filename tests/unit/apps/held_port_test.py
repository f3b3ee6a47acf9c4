#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""A second engine on the port of another, by every driver: it says who holds the port, and the first engine goes on."""

import os
import re
import subprocess
import sys
import unittest

from engine_rig import UROCE, EngineCase, until

PLACE = """
mount -t sysfs none /sys && ip link set lo up &&
ip link add near address 02:00:00:00:00:01 type veth peer name far &&
ip link set near up && ip link set far up && ip address add 10.9.0.1/24 dev near && exec "$@"
"""
ADDRESS = ("--ip", "10.9.0.7/24")
ON_NEAR = {  # EAL's options, the engine's
    "af_packet": (["--vdev=net_af_packet0,iface=near"], ["--port", "net_af_packet0", *ADDRESS]),
    "af_xdp": (["--vdev=net_af_xdp0,iface=near"], ["--port", "net_af_xdp0", *ADDRESS]),
    "pcap": (["--vdev=net_pcap0,iface=near"], ["--port", "net_pcap0", *ADDRESS]),
    "netdev": ([], ["--netdev", "near"]),
    "netdev of af_xdp": ([], ["--netdev", "near", "--netdev-driver", "af_xdp"]),
}
ALSO_ON_NEAR = ON_NEAR | {
    "pcap of two": (["--vdev=net_pcap0,rx_iface=near,tx_iface=near"], ["--port", "net_pcap0", *ADDRESS]),
    "impair": (["--vdev=net_af_packet0,iface=near", "--vdev=net_impair0,port=net_af_packet0"],
               ["--port", "net_impair0", *ADDRESS]),
    "tap beside it": (["--vdev=net_tap0,iface=other,remote=near"], ["--port", "net_tap0", *ADDRESS]),
}
ON_TAP = {
    "tap": (["--vdev=net_tap0,iface=tapped"], ["--port", "net_tap0", *ADDRESS]),
    "tap of two": (["--vdev=net_tap0,iface=tapped,remote=near"], ["--port", "net_tap0", *ADDRESS]),
    "netdev": ([], ["--netdev", "tapped"]),
    "af_packet": (["--vdev=net_af_packet0,iface=tapped"], ["--port", "net_af_packet0", *ADDRESS]),
}


def link(name):
    """What the kernel says of the interface: its state, and the program of XDP."""
    said = subprocess.run(["ip", "-d", "link", "show", name], capture_output=True, text=True, check=True).stdout
    return re.sub(r"\bqlen \d+", "", said)


@unittest.skipUnless(os.geteuid() == 0, "a network namespace and its interfaces need root")
class Held(EngineCase):
    def words(self, *options, eal=(), address=None):
        words = super().words(*options, eal=eal)
        return words[:words.index("--ip")] + words[words.index("--socket"):]

    def hold(self, how, name="first"):
        """The engine; its socket is kept for uroce."""
        eal, options = how
        self.socket = str(self.folder / f"{name}.sock")
        self.environment["UROCE_SOCKET"] = self.socket
        engine = subprocess.Popen(self.words(*options, eal=eal), env=self.environment, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, engine)
        said = []
        while not said or "serving" not in said[-1]:
            said.append(engine.stdout.readline())
            self.assertNotEqual(said[-1], "", said)
        self.socket = str(self.folder / "second.sock")
        return engine

    def expect_told(self, engine, how, who):
        eal, options = how
        end = self.run_uroced(*options, eal=eal)
        self.assertEqual((end.stdout, end.stderr), ("", f"uroced: {who.format(engine.pid)}\n"))
        self.assertEqual(end.returncode, 1)

    def expect_each_told(self, first, others, interface):
        engine = self.hold(first)
        before = until(lambda: "LOWER_UP" in link(interface) and link(interface), "the link")
        for name, how in others.items():
            with self.subTest(second=name):
                self.expect_told(engine, how, f"{interface}: another engine (process {{}}) has this interface: use "
                                 "or stop that engine, or choose another interface or --vlan")
                self.assertEqual(link(interface), before, "as it was")
        self.assertEqual(self.uroce("stat").returncode, 0)
        self.end(engine)

    def test_an_interface(self):
        for name, first in ON_NEAR.items():
            with self.subTest(first=name):
                self.expect_each_told(first, ALSO_ON_NEAR, "near")

    def test_a_tap(self):
        self.expect_each_told(ON_TAP["tap"], ON_TAP, "tapped")

    def test_an_address_that_the_interface_has_not(self):
        """The kernel would not answer for the address. The engine says so, because it may appear later."""
        self.socket = str(self.folder / "first.sock")
        engine = subprocess.Popen(self.words("--netdev", "near", "--ip", "10.9.0.1/24,10.77.0.1/24"),
                                  env=self.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        self.addCleanup(self.end, engine)
        self.assertEqual(engine.stdout.readline(), "uroced: --ip 10.77.0.1: near does not have this address, so no peer "
                         "finds it there (ip address add ... dev near)\n")
        said = engine.stdout.readline() + engine.stdout.readline()  # and of the MTU
        self.assertIn("uroced: serving uroce0 10.9.0.1,10.77.0.1, port ", said)

    def test_an_end_of_a_memif(self):
        """With a server and two clients, the second client would have no link, and would receive nothing."""
        ends = {role: ([f"--vdev=net_memif0,role={role},socket={self.folder}/memif,socket-abstract=no"],
                       ["--port", "net_memif0", *ADDRESS]) for role in ("server", "client")}
        self.hold(ends["server"], "server")
        client = self.hold(ends["client"])
        self.expect_told(client, ends["client"], "another engine (process {}) is the client of this memif: use or "
                         "stop that engine, or choose another socket= or id=")
        until(lambda: "PORT_ACTIVE" in subprocess.run([UROCE, "run", "--quiet", "--", "ibv_devinfo"], text=True,
              env=self.environment, stdout=subprocess.PIPE, check=True).stdout, "the link of the first client")

    def test_a_client_before_its_server(self):
        end = self.run_uroced("--port", "net_memif0", *ADDRESS, eal=[
            f"--vdev=net_memif0,role=client,socket={self.folder}/memif,socket-abstract=no"])
        self.assertEqual((end.returncode, end.stdout), (1, ""))
        self.assertEqual(end.stderr.splitlines()[-1], "uroced: cannot start port net_memif0: no process listens on the memif's socket: start its server first")  # the driver names it, in a line before

    def test_a_socket(self):
        """... of another engine, by an engine that has already opened its port."""
        engine = self.hold(([], []))
        self.socket = self.environment["UROCE_SOCKET"]
        vdev = f"--vdev=net_memif0,role=server,socket={self.folder}/memif,socket-abstract=no,bsize=8192"
        for eal, options in (([vdev], ["--port", "net_memif0", *ADDRESS]), ([], ["--netdev", "near"])):
            end = self.run_uroced(*options, eal=[*eal, "--file-prefix=uroce-test-second"])
            self.assertEqual((end.returncode, end.stdout, end.stderr), (
                1, "", f"uroced: --socket {self.socket}: another engine (process {engine.pid}) serves it: use or "
                "stop that engine, or choose another path\n"))


if __name__ == "__main__":
    if os.geteuid() == 0 and "INSIDE" not in os.environ:
        os.environ["INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "-nm", "sh", "-c", PLACE, "sh", sys.executable, "-B", *sys.argv])
    unittest.main()
