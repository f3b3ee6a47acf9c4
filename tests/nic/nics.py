# SPDX-License-Identifier: BSD-3-Clause
"""The network cards that QEMU emulates, and that DPDK drives as it drives hardware."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Nic:
    """`options`: of QEMU's device, as QEMU wants them; `queues`: as many as the card can have in QEMU."""
    name: str
    driver: str  # DPDK's
    options: str = ""
    queues: int = 1
    offload: str = "ipv4-cksum (tx software, rx software), vlan (tx port, rx port)"  # of uroced --offload all
    express: bool = True  # PCI Express: behind a port from which it can be removed
    filters: bool = True  # it lets only the wanted groups through
    kernel: str = ""  # the kernel's driver


BOTH = "ipv4-cksum (tx port, rx port), vlan (tx port, rx port)"

NICS = {nic.name: nic for nic in (
    Nic("e1000e", "net_e1000_em", offload=BOTH, kernel="e1000e"),
    Nic("vmxnet3", "net_vmxnet3", filters=False, kernel="vmxnet3"),
    # The driver needs modern virtio behind an IOMMU. With rss=on QEMU 7.2 stops receiving on some
    # queues: it cannot load its BPF program and spreads by itself.
    Nic("virtio-net-pci", "net_virtio",
        "iommu_platform=on,disable-legacy=on,rx_queue_size=1024,mq=on,vectors=6", 2, kernel="virtio-pci"),
    Nic("e1000", "net_e1000_em", offload=BOTH, express=False, kernel="e1000"),
)}
