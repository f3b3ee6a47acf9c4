# SPDX-License-Identifier: BSD-3-Clause
"""The table of cases. Each runs on every card, unless `on` excludes the card."""

import dataclasses

import bad_cases
import connected
import documented
import life_cases
import other_cases
import peer_cases
import wire_cases
from wire import LARGEST, Setup

QUICK = ("e1000e", "vmxnet3", "virtio-net-pci")
PLAIN = Setup()
JUMBO = Setup(mtu=4200)
LCORES = Setup(mtu=4200, lcores="0,1")
VLAN = Setup(mtu=4200, addresses="10.7.1.2/24,fd07:1::2/64", options=("--vlan", "7"))
OFFLOAD = Setup(mtu=4200, options=("--offload", "all"))
NO_OFFLOAD = Setup(mtu=4200, options=("--offload", "none"))
VLAN_OFFLOAD = Setup(mtu=4200, addresses="10.7.1.2/24,fd07:1::2/64", options=("--vlan", "7", "--offload", "all"))
KERNEL = Setup(mtu=4200, options=("--kernel-interface", "eth9"))


@dataclasses.dataclass
class Case:
    """`function(wire)` returns a remark or None. `setup`: of the guest's engine, None: none. `quick`: the cards on
    which the case belongs to the short form."""
    name: str
    setup: Setup
    function: object
    quick: tuple = ()
    on: object = None  # function of a Nic

    def fits(self, nic):
        return self.on is None or self.on(nic)


# (name, words, the guest's role, the cards with --quick). Each kind of request, the guest being the side that
# has more to do and the one that has less.
PAIRS = [
    ("write", "ib_write_bw -s 65536 -n 60", "server", QUICK[1:2]),
    ("write-out", "ib_write_bw -s 65536 -n 60", "client", ()),
    ("read", "ib_read_bw -s 65536 -n 60", "client", ()),
    ("send", "ib_send_bw -s 65536 -n 60", "server", ()),
    ("atomic", "ib_atomic_bw -n 300", "client", ()),
    ("read-lat", "ib_read_lat -s 64 -n 100", "server", ()),
    ("atomic-lat", "ib_atomic_lat -n 100", "server", ()),
    ("write-lat", "ib_write_lat -s 64 -n 100", "client", ()),
    ("send-lat", "ib_send_lat -s 64 -n 100 -e", "server", ()),
    ("pingpong", "ibv_rc_pingpong -n 60 -s 20000 -c", "server", ()),
]
# perftest uses half of the port's MTU, unless it is told otherwise
ACROSS = [
    ("write", "ib_write_bw -m 4096 -s 65536 -n 60", "server", QUICK),
    ("write-sizes", "ib_write_bw -m 4096 -a -n 5", "client", ()),
    ("send", "ib_send_bw -m 4096 -s 65536 -n 60 -b", "client", ()),
    ("read", "ib_read_bw -m 4096 -s 65536 -n 60", "server", ()),
    ("pingpong", "ibv_rc_pingpong -n 40 -s 60000 -m 4096 -c", "client", ()),
]


def pairs(mtu, family, rows, quick=True):
    place = Setup(mtu=mtu)
    for name, line, role, in_quick in rows:
        yield Case(f"{mtu or 1500}/{family}/{name}", place,
                   lambda wire, line=line, role=role: wire.measured(line, family, role),
                   in_quick if quick else ())


CASES = [
    *pairs(0, "v4", PAIRS),
    *pairs(0, "v6", PAIRS, False),
    Case("1500/v4/rping", PLAIN, connected.rping("v4"), QUICK[:1]),
    Case("1500/v6/rping", PLAIN, connected.rping("v6")),
    Case("1500/v4/sizes", PLAIN, peer_cases.sizes("v4")),
    *pairs(4200, "v4", ACROSS),
    Case("4200/v4/sizes", JUMBO, peer_cases.sizes("v4")),
    Case("4200/v4/rping", JUMBO, connected.rping("v4")),
    *pairs(4200, "v6", ACROSS, False),
    Case("4200/v6/sizes", JUMBO, peer_cases.sizes("v6")),
    *pairs(LARGEST, "v4", ACROSS, False),
    Case("lcores/rping", LCORES, connected.rping("v4")),
    Case("lcores/write-8qp", LCORES,
         lambda wire: wire.measured("ib_write_bw -q 8 -s 8192 -n 20 -b")),
    Case("wire/frames-v4", JUMBO, wire_cases.frames("v4")),
    Case("wire/frames-v6", JUMBO, wire_cases.frames("v6")),
    Case("wire/vlan", VLAN, wire_cases.vlan),
    Case("wire/offloads-v4", OFFLOAD, wire_cases.offloads),
    Case("wire/offloads-auto", JUMBO, wire_cases.offloads_by_itself),
    Case("wire/offloads-none", NO_OFFLOAD, wire_cases.no_offloads),
    Case("wire/vlan-offload", VLAN_OFFLOAD, wire_cases.vlan_offload),
    Case("wire/multicast-v4-in", PLAIN, wire_cases.multicast("v4", "server")),
    Case("wire/multicast-v4-out", PLAIN, wire_cases.multicast("v4", "client")),
    Case("wire/multicast-v6-in", PLAIN, wire_cases.multicast("v6", "server")),
    Case("wire/multicast-filter", PLAIN, wire_cases.multicast_filter),
    Case("kernel-interface/tcp", KERNEL, other_cases.kernel_interface),
    Case("perf", JUMBO, other_cases.perf),
    Case("sleeping", PLAIN, other_cases.sleeping),
    Case("two-engines", JUMBO, peer_cases.two_engines),
    Case("linux-rxe", JUMBO, peer_cases.rxe),
    Case("link", JUMBO, life_cases.link),
    Case("ended", JUMBO, life_cases.ended),
    Case("killed", JUMBO, life_cases.killed, QUICK),
    Case("documented", None, documented.documented),
    Case("bad/in-use", PLAIN, bad_cases.in_use),
    Case("bad/doctor", None, bad_cases.all_is_well),
    # e1000 carries every MTU that uroced knows
    Case("bad/mtu", None, bad_cases.mtu, on=lambda nic: nic.name != "e1000"),
    # virtio-net has rings of any length
    Case("bad/descriptors", None, bad_cases.descriptors, on=lambda nic: nic.name != "virtio-net-pci"),
    Case("bad/wrong-driver", None, bad_cases.wrong_driver),
    Case("bad/no-driver", None, bad_cases.no_driver),
    Case("bad/no-access", None, bad_cases.no_access),
    Case("bad/no-card", None, bad_cases.no_card),
    Case("bad/not-named", None, bad_cases.not_named),
    Case("bad/few-hugepages", None, bad_cases.few_hugepages),
    Case("bad/no-hugepages", None, bad_cases.no_hugepages),
    Case("bad/no-link", None, bad_cases.no_link),
    # last: it removes the card and adds it again
    Case("removed", JUMBO, life_cases.removed, on=lambda nic: nic.express),
]
