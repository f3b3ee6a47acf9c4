# SPDX-License-Identifier: BSD-3-Clause
"""Addresses beside those of the other cases: link-local ones, and those of a VLAN interface."""

import dataclasses

from case import ProgramCase

VLAN = 7
OURS, THEIRS = ("10.9.7.1", "fd09:7::1"), ("10.9.7.2", "fd09:7::2")


@dataclasses.dataclass
class VlanCase(ProgramCase):
    """
    Another engine of ours with addresses of its own on the tap, all of whose frames are tagged; in
    the guest, rxe0 has the GIDs of eth0's VLAN interface.
    """

    def run(self, wire, role):
        rig, guest = wire.rig, wire.guest
        guest.run(["ip", "link", "add", "link", "eth0", "name", "eth0.7", "type", "vlan", "id",
                   str(VLAN)])
        try:
            guest.run(["ip", "link", "set", "eth0.7", "up"])
            guest.run(["ip", "address", "add", f"{THEIRS[0]}/24", "dev", "eth0.7"])
            guest.run(["ip", "address", "add", f"{THEIRS[1]}/64", "dev", "eth0.7", "nodad"])
            rig.place["vlan"] = "a"
            rig.engine("vlan", ["--vdev=net_af_packet0,iface=tap0,framesz=8192,blocksz=65536"],
                       ["--port", "net_af_packet0", "--ip", f"{OURS[0]}/24,{OURS[1]}/64",
                        "--mtu", "4200", "--vlan", str(VLAN)])
            super().run(wire, role)
        finally:
            engine = rig.engines.pop("vlan", None)
            if engine:
                engine.end()
            guest.run(["ip", "link", "del", "eth0.7"])

    def their_gid(self, wire):
        return wire.guest.gid_index(THEIRS[self.family == "v6"])


def cases():
    for program, words in (("rc_pingpong", ["ibv_rc_pingpong", "-n", "200"]),
                           ("ud_pingpong", ["ibv_ud_pingpong", "-n", "200"]),
                           ("send_bw", ["ib_send_bw", "-F", "-s", "65536", "-n", "30"])):
        yield ProgramCase(f"link-local/{program}", words, family="link-local",
                          quick=program == "rc_pingpong")
    for family in ("v4", "v6"):
        yield VlanCase(f"vlan-{family}/rc_pingpong", ["ibv_rc_pingpong", "-n", "200"],
                       family=family, side="vlan", quick=family == "v4")
        yield VlanCase(f"vlan-{family}/write_bw", ["ib_write_bw", "-F", "-s", "65536", "-n", "30"],
                       family=family, side="vlan")
