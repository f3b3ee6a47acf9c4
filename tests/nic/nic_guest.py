# SPDX-License-Identifier: BSD-3-Clause
"""A guest with emulated network cards behind an emulated IOMMU, and an engine on one of them."""

import dataclasses
import json
import signal
import time

from machine import Machine, initramfs
from monitor import Monitor
from nics import Nic
from rig import Failure, wait_until

# With the kernel's own drivers of the cards: a card is taken from one of them, as on a server.
MODULES = ["vfio", "vfio_iommu_type1", "vfio_pci", "tun", "e1000e", "e1000", "vmxnet3"]
SOCKET = "/run/uroced.sock"
HUGEPAGES = 400  # of 2 MiB
SLOT = 0x10  # of the first card or of its port, on the first bus

# As docs/operations.md says.
BIND = """set -e
cd /sys/bus/pci/devices/$1
echo $2 > driver_override
[ ! -e driver ] || echo $1 > driver/unbind
echo $1 > /sys/bus/pci/drivers_probe
basename $(readlink driver)
"""

# The EAL loads all of DPDK's drivers, 128 libraries: emulated, that is half of an engine's start. Here it finds
# those whose names are given.
FEW_DRIVERS = """set -e
cd /usr/lib/x86_64-linux-gnu/dpdk/pmds-*
mkdir /run/drivers
for name; do cp -d librte_$name.so* /run/drivers; done
mount --bind /run/drivers .
"""
DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring", "net_e1000", "net_virtio", "net_vmxnet3")


@dataclasses.dataclass
class Card:
    """A card of the guest; the tap `tap` of this machine is its cable."""
    nic: Nic
    index: int
    bdf: str = ""

    @property
    def id(self):
        return f"card{self.index}"

    @property
    def wire(self):
        """QEMU's name of the cable."""
        return f"wire{self.index}"

    @property
    def tap(self):
        return f"nic{self.index}"

    @property
    def mac(self):
        return f"52:54:00:00:01:{self.index:02x}"

    def properties(self):
        """The options of QEMU's device."""
        options = dict(word.split("=") for word in self.nic.options.split(",") if word)
        place = ({"bus": f"place{self.index}"} if self.nic.express
                 else {"addr": hex(SLOT + self.index)})
        return {"driver": self.nic.name, "id": self.id, "netdev": self.wire, "mac": self.mac,
                "romfile": "", **place, **options}

    def words(self):
        """QEMU's."""
        queues = f",queues={self.nic.queues}" if self.nic.queues > 1 else ""
        place = ["-device", f"pcie-root-port,id=place{self.index},chassis={self.index + 1},"
                            f"addr={SLOT + self.index:#x}"] if self.nic.express else []
        return [*place,
                "-netdev", f"tap,id={self.wire},ifname={self.tap},script=no,downscript=no,"
                           f"vhost=off,vnet_hdr=off{queues}",  # captures begin with the frame
                "-device", ",".join(f"{key}={value}" for key, value in self.properties().items())]


class NicGuest(Machine):
    """The taps of the cards are in the same namespace as the control tap."""

    memory = 1792
    kernel_words = "intel_iommu=on"

    def __init__(self, rig, nics, control, address, folder):
        self.cards = [Card(nic, index) for index, nic in enumerate(nics)]
        self.card = self.cards[0]  # that of the cases that run
        self.build = rig.build
        self.engine = self.setup = self.monitor = None
        self.qmp = rig.folder / "qmp.sock"
        boot = initramfs(folder, MODULES, "nic")
        super().__init__(rig, "a", control, address, 1500, boot, "52:54:00:00:00:01")

    @property
    def bdf(self):
        return self.card.bdf

    def devices(self):
        return ["-machine", "q35", "-device", "intel-iommu,caching-mode=on",
                *(word for card in self.cards for word in card.words()),
                "-qmp", f"unix:{self.qmp},server=on,wait=off"]

    def prepare(self):
        self.engine = self.setup = None
        if self.monitor:
            self.monitor.close()
        self.monitor = Monitor(self.qmp)
        self.shell("echo $1 > /proc/sys/vm/nr_hugepages", str(HUGEPAGES), limit=180)
        if self.is_quick:
            self.shell(FEW_DRIVERS, *DRIVERS)
        for card in self.cards:
            card.bdf = self.find(card)
            self.bind("vfio-pci", card)

    def plug(self):
        """Adds the card again, after it was removed."""
        # QMP wants numbers and booleans, not strings
        kinds = {"on": True, "off": False}
        card = {key: int(value) if value.isdigit() else kinds.get(value, value)
                for key, value in self.card.properties().items()}
        self.monitor.do("device_add", **card)
        wait_until("the card in the guest", 30, lambda: self.shell(
            "[ -e /sys/bus/pci/devices/$1 ] && echo there", self.bdf, check=False), 0.2)
        self.bind("vfio-pci")

    def find(self, card):
        place = f"0000:00:{SLOT + card.index:02x}.0"
        if not card.nic.express:
            return place
        words = self.run(["ls", f"/sys/bus/pci/devices/{place}"]).split()
        found = [word for word in words if word.startswith("0000:") and word.endswith(".0")]
        if len(found) != 1:
            raise Failure(f"the guest has these cards behind {place}: {found}")
        return found[0]

    def bind(self, driver, card=None):
        bdf = (card or self.card).bdf
        bound = self.shell(BIND, bdf, driver).strip()
        if bound != driver:
            raise Failure(f"{bdf} is bound to {bound}, not to {driver}")

    def finish(self, number, limit):
        """Uses this machine's clock, because that of a guest that booted on a busy machine runs too fast: a minute of
        it was over in some seconds."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            status, output = self.output(number)
            if status is not None:
                return status, output
            time.sleep(0.1)
        self.signal(number, signal.SIGKILL)
        return "timeout", self.output(number)[1]

    def run(self, words, limit=60, check=True):
        status, output = self.finish(self.start(words), limit)
        if check and status != 0:
            raise Failure(f"in the guest, {' '.join(words)} ended with {status}: "
                          f"{output.strip()[-300:]}")
        return output

    def shell(self, script, *words, limit=60, check=True):
        return self.run(["sh", "-c", script, "sh", *words], limit, check)

    # -- the engine ------------------------------------------------------------------------------

    def engine_words(self, setup, card=None, socket=SOCKET):
        bdf = (card or self.card).bdf
        mtu = ["--mtu", str(setup.mtu)] if setup.mtu else []
        return [str(self.build / "apps/uroced"), "-l", setup.lcores, "-a", bdf, "--",
                "--port", bdf, "--ip", setup.addresses, "--socket", socket, *mtu,
                *setup.options]

    def start_engine(self, setup, limit=180):
        """Starts an engine on the card and waits until it serves."""
        self.engine, self.setup = self.start(self.engine_words(setup)), setup
        try:
            self.await_engine(self.engine, limit)
        except Failure:
            self.end_engine(signal.SIGKILL)
            raise

    def await_engine(self, engine, limit=180, socket=SOCKET):
        def serves():
            status, output = self.output(engine)
            if status is not None:
                raise Failure(f"in the guest, uroced ended with {status}: "
                              f"{' / '.join(output.strip().splitlines()[-4:])}")
            return "serving" in output
        wait_until("the guest's engine", limit, serves, 0.2, lambda: self.stands(engine))
        wait_until("the link of the guest's engine", 60, lambda: self.has_link(socket), 0.2)

    def has_link(self, socket):
        """On a busy machine an engine may take longer to start than `uroce stat` waits for it."""
        try:
            return self.statistics(socket)["active"]
        except Failure:
            return False

    def says(self, engine, text, limit):
        """The line of an engine's output that has this text."""
        def said():
            status, output = self.output(engine)
            found = [line for line in output.splitlines() if text in line]
            if status is not None and not found:
                raise Failure(f"in the guest, uroced ended with {status} and did not say "
                              f"'{text}': {output.strip()[-200:]}")
            return found
        return wait_until(f"'{text}' of the guest's engine", limit, said, 0.2)[0]

    def has(self, setup):
        """Whether an engine with this setup runs."""
        return (self.engine is not None and self.setup == setup and
                self.output(self.engine)[0] is None)

    def end_engine(self, number=signal.SIGTERM):
        """Ends the engine; (status, output)."""
        if self.engine is None:
            return None, ""
        engine, self.engine = self.engine, None
        self.signal(engine, number)
        return self.finish(engine, 30)

    def check_engine(self):
        status, output = self.output(self.engine)
        if status is not None:
            said = " / ".join(output.strip().splitlines()[-3:])
            self.engine = None
            raise Failure(f"the guest's engine ended with {status}: {said}")

    def statistics(self, socket=SOCKET):
        return json.loads(self.run([str(self.build / "apps/uroce"), "stat", "--json",
                                    "--socket", socket]))

    def verbs(self, words, socket=SOCKET):
        """Starts an unmodified program on the guest's engine; returns its number."""
        return self.start([str(self.build / "apps/uroce"), "run", "--quiet", "--socket", socket,
                           "--", *words])

    def listens_by_cm(self, port, number, limit=40):
        """Waits until a program listens on this port of rdma_cm."""
        def there():
            ids = json.loads(self.run([str(self.build / "apps/uroce"), "stat", "--cm", "--json",
                                       "--socket", SOCKET]))
            if any(id["state"] == "LISTEN" and id["source"]["port"] == port for id in ids):
                return True
            if self.output(number)[0] is not None:
                raise Failure(f"in the guest, a program ended before it listened: "
                              f"{self.said(number)}")
            return False
        wait_until(f"port {port} of rdma_cm in the guest", limit, there, 0.2)

    def set_link(self, up):
        self.monitor.do("set_link", name=self.card.id, up=up)
