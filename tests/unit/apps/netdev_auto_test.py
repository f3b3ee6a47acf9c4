#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""--netdev-driver auto: af_xdp where it works, af_packet elsewhere, and the engine says which and why."""

import os
import subprocess
import sys
import unittest

from engine_rig import EngineCase, until

PLACE = """
mount -t sysfs none /sys && ip link set lo up &&
ip link add near type veth peer name far && ip link add wide mtu 3600 type veth peer name wider mtu 3600 &&
ip link add alone type bridge && for i in near far wide wider alone; do ip link set $i up || exit 1; done &&
ip address add 10.9.0.1/24 dev near && ip address add 10.9.1.1/24 dev wide &&
ip address add 10.9.2.1/24 dev alone && exec "$@"
"""
PACKET = "--netdev-driver af_packet, because not af_xdp: "


def program_on(interface):
    said = subprocess.run(["ip", "-d", "link", "show", interface], capture_output=True, text=True, check=True).stdout
    return "prog/xdp" in said


@unittest.skipUnless(os.geteuid() == 0, "a network namespace and its interfaces need root")
class Auto(EngineCase):
    def words(self, *options, eal=(), address=None):
        words = super().words(*options, eal=eal)
        return words[:words.index("--ip")] + words[words.index("--socket"):]

    def begin(self, interface, *options):
        """The engine, and what it said until it served."""
        self.socket = str(self.folder / "engine.sock")
        engine = subprocess.Popen(self.words("--netdev", interface, *options), env=self.environment, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, engine)
        said = []
        while not said or "serving" not in said[-1]:
            said.append(engine.stdout.readline())
            self.assertNotEqual(said[-1], "", said)
        return engine, "".join(said)

    def expect(self, interface, xdp, line, *options):
        engine, said = self.begin(interface, "--netdev-driver", "auto", *options)
        self.assertIn(line, said)
        self.assertEqual(said.count("--netdev-driver"), 1, said)
        self.assertEqual(program_on(interface), xdp)
        self.end(engine)
        # Who reads /proc/PID/fd, as uroce doctor does, keeps the program's descriptor open for a moment.
        until(lambda: not program_on(interface), f"{interface} without a program, after status {engine.returncode}")
        self.assertEqual(engine.returncode, 0, said)

    def works(self):
        """Whether af_xdp does here at all; the machine's kernel or the build may lack it."""
        end = subprocess.run(self.words("--netdev", "near", "--netdev-driver", "af_xdp", "--exit-when-idle", "1"),
                             env=self.environment, text=True, capture_output=True, check=False, timeout=60)
        return end.returncode == 0

    def test_where_it_works(self):
        if self.works():
            self.expect("near", True, "near: --netdev-driver af_xdp\n")
        else:
            self.expect("near", False, "near: " + PACKET)

    def test_an_mtu_that_it_does_not_carry(self):
        self.expect("wide", False, "wide: " + PACKET)

    def test_a_driver_without_it(self):
        self.expect("alone", False, "alone: " + PACKET)

    def test_a_vlan(self):
        self.expect("near", False, PACKET + "only an engine without --vlan can use af_xdp", "--vlan", "7")

    def test_others_are_not_announced(self):
        engine, said = self.begin("near")
        self.assertNotIn("--netdev-driver", said)
        self.end(engine)


if __name__ == "__main__":
    if os.geteuid() == 0 and "INSIDE" not in os.environ:
        os.environ["INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "-nm", "sh", "-c", PLACE, "sh", sys.executable, "-B", *sys.argv])
    unittest.main()
