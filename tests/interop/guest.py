# SPDX-License-Identifier: BSD-3-Clause
"""A Linux guest whose kernel is the peer: rdma_rxe on a tap."""

import ipaddress

from machine import Machine, initramfs
from rig import wait_until

MODULES = ["crc32_generic", "crc32_pclmul", "8021q", "sch_netem", "ifb", "act_mirred",
           "cls_matchall", "sch_ingress", "veth", "rdma_rxe", "ib_uverbs", "rdma_ucm", "ib_umad"]


class Guest(Machine):
    """A booted guest at the other end of the tap `iface` in the namespace of `side`."""

    def __init__(self, rig, side, iface, addresses, mtu, folder, mac="52:54:00:12:34:56"):
        self.addresses = addresses
        super().__init__(rig, side, iface, addresses[0], mtu, initramfs(folder, MODULES), mac)

    def prepare(self):
        """rxe has its addresses."""
        # busybox does not support nodad
        self.run(["ip", "address", "add", f"{self.addresses[1]}/64", "dev", "eth0", "nodad"])
        self.run(["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "eth0"])
        for address in self.addresses:
            self.gid_index(address)

    def gid_index(self, address):
        """The index of an address in rxe0's table, which the kernel fills with a delay."""
        wanted = ipaddress.ip_address(address)
        if wanted.version == 4:
            wanted = ipaddress.ip_address(f"::ffff:{wanted}")

        def there():
            lines = self.run(["cat", "/sys/class/infiniband/rxe0/ports/1/gids/0",
                              *(f"/sys/class/infiniband/rxe0/ports/1/gids/{i}"
                                for i in range(1, 12))]).split()
            gids = [ipaddress.ip_address(line) for line in lines]
            return (wanted in gids) and (gids.index(wanted),)
        return wait_until(f"the GID {address} of the guest's rxe0", 30, there, 0.1)[0]

    def counter(self, name):
        """A counter of rxe."""
        return int(self.run(["cat", f"/sys/class/infiniband/rxe0/ports/1/hw_counters/{name}"]))
