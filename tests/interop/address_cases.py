# SPDX-License-Identifier: BSD-3-Clause
"""More kinds of addresses: link-local ones, and those of a VLAN interface."""

import contextlib
import dataclasses

from case import ProgramCase, Wire
from cm_cases import RPING, CmCase

VLAN = 7
OURS, THEIRS = ("10.9.7.1", "fd09:7::1"), ("10.9.7.2", "fd09:7::2")


@contextlib.contextmanager
def vlan(wire):
    """Another uroce engine with addresses of its own on the tap, which tags all frames; in the
    guest, rxe0 has the GIDs of eth0's VLAN interface. Yields the two as a wire."""
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
        yield Wire(rig, guest, OURS, THEIRS, "vlan")
    finally:
        engine = rig.engines.pop("vlan", None)
        if engine:
            engine.end()
        guest.run(["ip", "link", "del", "eth0.7"])


@dataclasses.dataclass
class VlanCase(ProgramCase):
    """The programs connect through TCP without a tag."""

    def run(self, wire, role):
        with vlan(wire):
            super().run(wire, role)

    def their_gid(self, wire):
        return wire.guest.gid_index(THEIRS[self.family == "v6"])


@dataclasses.dataclass
class VlanCmCase(CmCase):
    """The programs connect through rdma_cm, so everything is tagged."""

    def run(self, wire, role):
        with vlan(wire) as tagged:
            for address in THEIRS:
                wire.guest.gid_index(address)
            return super().run(tagged, role)

    def family(self):
        return self.name.split("/")[0].removeprefix("vlan-")


def cases():
    for program, words in (("rc_pingpong", ["ibv_rc_pingpong", "-n", "100", "-r", "40"]),
                           ("ud_pingpong", ["ibv_ud_pingpong", "-n", "100", "-r", "40"]),
                           ("send_bw", ["ib_send_bw", "-F", "-s", "65536", "-n", "30"])):
        yield ProgramCase(f"link-local/{program}", words, family="link-local",
                          quick=program == "rc_pingpong")
    for family in ("v4", "v6"):
        yield VlanCase(f"vlan-{family}/rc_pingpong", ["ibv_rc_pingpong", "-n", "100", "-r", "40"],
                       family=family, side="vlan", quick=family == "v4")
        yield VlanCase(f"vlan-{family}/write_bw", ["ib_write_bw", "-F", "-s", "65536", "-n", "30"],
                       family=family, side="vlan")
        yield VlanCmCase(f"vlan-{family}/rping", RPING[family].server, RPING[family].client)
