# SPDX-License-Identifier: BSD-3-Clause
"""A guest with an emulated network card behind an emulated IOMMU, and an engine on the card."""

import json
import re
import signal

from inside import connect
from machine import SERVER_PORT, Machine, initramfs
from monitor import Monitor
from rig import ROOT, Failure, wait_until

MODULES = ["vfio", "vfio_iommu_type1", "vfio_pci", "tun"]
MAC = "52:54:00:00:00:02"
SOCKET = "/run/uroced.sock"
HUGEPAGES = 400  # of 2 MiB

# As docs/operations.md says.
BIND = """set -e
cd /sys/bus/pci/devices/$1
echo $2 > driver_override
[ ! -e driver ] || echo $1 > driver/unbind
echo $1 > /sys/bus/pci/drivers_probe
basename $(readlink driver)
"""


class NicGuest(Machine):
    """The card is at the other end of the tap `wire`, in the same namespace as the control tap."""

    memory = 2560
    kernel_words = "intel_iommu=on"

    def __init__(self, rig, nic, control, wire, address, folder):
        self.nic, self.wire = nic, wire
        self.build = rig.build
        self.engine = self.setup = None
        self.qmp = rig.folder / "qmp.sock"
        boot = initramfs(folder, MODULES, "nic")
        super().__init__(rig, "a", control, address, 1500, boot, "52:54:00:00:00:01")

    def card(self):
        """The properties of QEMU's device."""
        options = dict(word.split("=") for word in self.nic.options.split(",") if word)
        place = {"bus": "place"} if self.nic.express else {"addr": "0x10"}
        return {"driver": self.nic.name, "id": "nic", "netdev": "wire", "mac": MAC, "romfile": "",
                **place, **options}

    def devices(self):
        queues = f",queues={self.nic.queues}" if self.nic.queues > 1 else ""
        return ["-machine", "q35", "-device", "intel-iommu,caching-mode=on",
                "-device", "pcie-root-port,id=place,chassis=1",
                "-netdev", f"tap,id=wire,ifname={self.wire},script=no,downscript=no,vhost=off,"
                           f"vnet_hdr=off{queues}",  # captures begin with the frame

                "-device", ",".join(f"{key}={value}" for key, value in self.card().items()),
                "-qmp", f"unix:{self.qmp},server=on,wait=off"]

    def prepare(self):
        self.engine = self.setup = None
        self.monitor = Monitor(self.qmp)
        self.shell(f"echo {HUGEPAGES} > /proc/sys/vm/nr_hugepages")
        self.bdf = self.find()
        self.bind("vfio-pci")

    def plug(self):
        """Puts the card back in, after it was taken out."""
        # QMP wants numbers and truth as such
        kinds = {"on": True, "off": False}
        card = {key: int(value) if value.isdigit() else kinds.get(value, value)
                for key, value in self.card().items()}
        self.monitor.do("device_add", **card)
        wait_until("the card in the guest", 30, lambda: self.shell(
            "[ -e /sys/bus/pci/devices/$1 ] && echo there", self.bdf, check=False), 0.2)
        self.bind("vfio-pci")

    def find(self):
        if not self.nic.express:
            return "0000:00:10.0"
        words = self.run(["ls", "/sys/bus/pci/devices"]).split()
        found = [word for word in words if not word.startswith("0000:00:")]
        if len(found) != 1:
            raise Failure(f"the guest has these cards behind its port: {found}")
        return found[0]

    def bind(self, driver):
        bound = self.shell(BIND, self.bdf, driver).strip()
        if bound != driver:
            raise Failure(f"{self.bdf} is bound to {bound}, not to {driver}")

    def shell(self, script, *words, limit=60, check=True):
        return self.run(["sh", "-c", script, "sh", *words], limit, check)

    # -- the engine ------------------------------------------------------------------------------

    def engine_words(self, setup):
        mtu = ["--mtu", str(setup.mtu)] if setup.mtu else []
        return [str(self.build / "apps/uroced"), "-l", setup.lcores, "-a", self.bdf, "--",
                "--port", self.bdf, "--ip", setup.addresses, "--socket", SOCKET, *mtu,
                *setup.options]

    def start_engine(self, setup, limit=90):
        """Starts an engine on the card and waits until it serves."""
        self.engine, self.setup = self.start(self.engine_words(setup)), setup

        def serves():
            status, output = self.output(self.engine)
            if status is not None:
                raise Failure(f"in the guest, uroced ended with {status}: "
                              f"{' / '.join(output.strip().splitlines()[-4:])}")
            return "serving" in output
        try:
            wait_until("the guest's engine", limit, serves, 0.2)
            wait_until("the link of the guest's engine", 30,
                       lambda: self.statistics()["active"], 0.2)
        except Failure:
            self.end_engine(signal.SIGKILL)
            raise

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

    def statistics(self):
        return json.loads(self.run([str(self.build / "apps/uroce"), "stat", "--json",
                                    "--socket", SOCKET]))

    def verbs(self, words):
        """Starts an unmodified program on the guest's engine; returns its number."""
        return self.start([str(self.build / "apps/uroce"), "run", "--quiet", "--socket", SOCKET,
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
        self.monitor.do("set_link", name="nic", up=up)
