# SPDX-License-Identifier: BSD-3-Clause
"""A Linux guest under QEMU (emulated, without KVM), from Debian packages.

The guest has no disk: an initramfs of busybox and some modules mounts this machine's root
read-only over 9p, with a tmpfs on top, so that every program installed here runs there.
A small server in the guest (guest_server.py) executes the requests of the cases.
"""

import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))

from inside import connect  # noqa: E402
from kernel import kernel, module_files  # noqa: E402
from rig import Failure, Process, Skipped, calm_clock, wait_until  # noqa: E402  (the path comes first)

HERE = pathlib.Path(__file__).resolve().parent
SERVER_PORT = 7471
SERVES = "guest server serves"  # what guest_server.py prints
# every guest needs these
MODULES = ["virtio_pci", "virtio_net", "9p", "9pnet_virtio", "overlay"]
# MiB of translated code. After a reset, QEMU is up to fifty times slower until this cache has been
# emptied once: with QEMU's own choice (1 GiB) the second boot took 73 s, with this one 7 s.
TRANSLATED = 64
# QEMU 7.2 leaves out the memory barriers of a guest that cannot have a second processor, as if its devices did not run on
# threads of their own: a notification of virtio can get lost, and the guest waits for its disk or network for ever.
MAX_PROCESSORS = 2

INIT = """#!/bin/busybox sh
export PATH=/bin
mkdir -p /proc /sys /dev /lower /upper /new
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for m in $(cat /modules/order); do insmod /modules/$m || echo "insmod $m failed"; done
mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=1048576,ro host /lower
mount -t tmpfs tmpfs /upper
mkdir /upper/u /upper/w
mount -t overlay -o lowerdir=/lower,upperdir=/upper/u,workdir=/upper/w overlay /new
for d in proc sys dev; do mount --move /$d /new/$d; done
mount -t tmpfs tmpfs /new/run
mkdir -p /new/dev/pts /new/dev/shm
ip link set lo up
for w in $(cat /new/proc/cmdline); do
	case $w in uroce.*=*) eval "$(echo "$w" | sed 's/^uroce[.]\\([a-z0-9]*\\)=\\(.*\\)/\\1="\\2"/')";; esac
done
ip link set eth0 mtu $mtu up
for i in eth0 default; do echo 0 > /new/proc/sys/net/ipv6/conf/$i/accept_dad; done
ip address add $v4/24 dev eth0
ulimit -l unlimited
exec chroot /new /usr/bin/python3 -ISB $server
"""
COMMANDS = ["cat", "chroot", "insmod", "ip", "mkdir", "mount", "sed"]  # of INIT; each is a link to busybox
# What Debian's kernel does to be safe, and what it watches and tests, costs an emulated processor much: returns
# through retpolines, new memory that is cleared, copies that are checked, security modules, ciphers that are tested.
LEAN = ("mitigations=off init_on_alloc=0 hardened_usercopy=off lsm=capability audit=0 nowatchdog "
        "rodata=off cgroup_disable=memory cryptomgr.notests")


PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio",
            "modprobe": "kmod", "dpkg-deb": "dpkg", "rdma": "iproute2", "tc": "iproute2",
            "ibv_rc_pingpong": "ibverbs-utils", "ib_write_bw": "perftest", "rping": "rdmacm-utils"}


def check_machine():
    """Reports what is missing before anything starts."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = {package for name, package in PROGRAMS.items() if shutil.which(name) is None}
    if "busybox-static" not in missing and b"/ld-linux" in pathlib.Path(
            shutil.which("busybox")).read_bytes():
        missing.add("busybox-static")
    if missing:
        raise Failure(f"please install (names of Debian 12): {' '.join(sorted(missing))}")
    if platform.machine() != "x86_64":
        raise Skipped(f"the guest executes this machine's programs as x86_64, and it is "
                      f"{platform.machine()}")
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        raise Skipped("this needs root and /dev/net/tun")


def initramfs(folder, modules, name="initramfs"):
    """(kernel image, initramfs) with these modules beside MODULES. The name is the user's own."""
    check_machine()
    image, tree, release = kernel(folder)
    made = folder / f"{name}-{release}.cpio"
    stage = folder / f"stage-{name}"
    shutil.rmtree(stage, ignore_errors=True)
    (stage / "bin").mkdir(parents=True)
    (stage / "modules").mkdir()
    shutil.copy2(shutil.which("busybox"), stage / "bin/busybox")
    for command in COMMANDS:
        (stage / "bin" / command).symlink_to("busybox")
    order = []
    for path in module_files(tree, release, [*MODULES, *modules]):
        shutil.copy2(path, stage / "modules")
        order.append(os.path.basename(path))
    (stage / "modules/order").write_text("\n".join(order) + "\n")
    (stage / "init").write_text(INIT)
    (stage / "init").chmod(0o755)
    names = subprocess.run(["find", "."], cwd=stage, capture_output=True, check=True).stdout
    with open(made, "wb") as out:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=stage, input=names,
                       stdout=out, check=True, timeout=60)
    shutil.rmtree(stage)
    return image, made


class Silent(Failure):
    """A guest that answers nothing any more: its kernel or its emulator stands still."""


class Machine:
    """A guest that boots at once. Its first network interface has `address` and is at the other end
    of the tap `iface`, in the namespace of `side`."""

    here = HERE

    def __init__(self, rig, side, iface, address, mtu, boot, mac):
        self.rig, self.side, self.iface, self.mtu, self.mac = rig, side, iface, mtu, mac
        self.address = address
        self.image, self.initramfs = boot
        self.start_machine()

    # properties of one kind of guest
    memory = 1024  # MiB; the kernel prepares all of it at each boot
    kernel_words = ""
    # of every guest of a run
    processors = 2
    is_quick = False
    replaced = False  # it stood still once, and was started again

    @classmethod
    def be_quick(cls):
        """From now on, guests have one processor, and less to do. With two, QEMU's threads translate for one another, and interrupt
        each other at each change of a page table: the same cases cost twice the processor time of this machine."""
        cls.processors, cls.is_quick = 1, True

    def devices(self):
        """More words for QEMU."""
        return []

    def prepare(self):
        """After each boot."""

    def start_machine(self):
        """On a busy host an emulated processor was seen to stand still before the kernel's first line: then the
        machine is started once more."""
        self.launch()
        try:
            self.await_boot()
        except Failure:
            self.vanish()
            self.launch()
            self.await_boot()

    def launch(self):
        # Every read of another clock (the HPET) would leave the guest. On a busy machine the kernel's
        # check of its timer takes the emulated one for broken, and panics.
        line = (f"console=ttyS0 quiet tsc=reliable clocksource=tsc no_timer_check {LEAN} "
                f"{self.kernel_words} "
                f"uroce.mtu={self.mtu} uroce.v4={self.address} "
                f"uroce.server={HERE / 'guest_server.py'}")
        words = [*self.rig.inside(self.side),
                 "qemu-system-x86_64", "-name", self.rig.prefix,
                 "-accel", f"tcg,thread=multi,tb-size={TRANSLATED}", "-cpu", "max",
                 "-smp", f"{self.processors},maxcpus={MAX_PROCESSORS}",
                 "-m", str(self.memory), "-nographic", "-nodefaults", "-serial", "stdio",
                 "-kernel", str(self.image), "-initrd", str(self.initramfs), "-append", line,
                 *self.devices(),
                 "-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
                 "-device", "virtio-9p-pci,fsdev=root,mount_tag=host",
                 "-netdev", f"tap,id=net,ifname={self.iface},script=no,downscript=no",
                 "-device", f"virtio-net-pci,netdev=net,mac={self.mac}"]
        # It is emulated. On a busy machine it once gave no answer for as long as all retries of ibv_rc_pingpong take.
        self.qemu = Process(self.rig, "guest", words, favoured=True)
        self.boots = 0

    def await_boot(self, limit=180):
        """Waits until the guest's server answers (again)."""
        self.boots += 1
        try:
            self.qemu.expect(f"(?s)({SERVES}.*){{{self.boots}}}", limit)
        except Failure as failure:
            said = self.qemu.output().strip().splitlines()[-3:]
            raise Failure(f"{failure}; the guest's last lines: {' / '.join(said)}") from None
        self.prepare()

    def reboot(self):
        """Resets the machine: connections are not closed. It may be reset before its server answers."""
        question = {"start": ["sh", "-c", "echo b > /proc/sysrq-trigger"]}
        with self.connect() as server:
            server.sendall(json.dumps(question).encode() + b"\n")

    def vanish(self):
        self.qemu.signal(signal.SIGKILL)
        self.qemu.wait(10)

    def tidy(self):
        """After a failed case: kills its programs, and prepares a guest that has booted again; restarts
        one that is gone or does not answer."""
        try:
            if self.request({"end all": True}, 10)["status"] != 0:
                raise Failure("a program does not end")
            if self.qemu.output().count(SERVES) > self.boots:
                self.await_boot()
        except Failure:
            self.vanish()
            self.start_machine()

    def connect(self):
        """To the guest's server, from the namespace of the engine's side."""
        return connect(f"{self.rig.prefix}{self.side}", self.address, SERVER_PORT, 20)

    def request(self, what, limit):
        """Sends a request to the guest's server and returns the answer."""
        try:
            with self.connect() as server:
                server.settimeout(limit + 30)
                server.sendall(json.dumps(what).encode() + b"\n")
                reply = server.makefile().readline()
        except (OSError, Failure) as error:
            raise self.unanswered(f"the guest did not answer {what} in {limit + 30} s: {error}") from None
        if not reply:
            raise Failure(f"the guest ended the connection at {what}: {self.qemu.tail()}")
        return json.loads(reply)

    def unanswered(self, said):
        """The failure: whether the guest answers anything, and what its kernel said last."""
        said += f"; the guest's last lines: {' / '.join(self.qemu.output().strip().splitlines()[-5:])}"
        try:
            with self.connect() as server:
                server.settimeout(20)
                server.sendall(b'{"listens": 1}\n')
                if server.makefile().readline():
                    return Failure(f"{said}; it answers other requests")
        except (OSError, Failure):
            pass
        return Silent(said)

    def run(self, words, limit=30, check=True):
        """Executes a program, waits for it, and returns its output."""
        reply = self.request({"run": words, "limit": limit}, limit)
        if check and reply["status"] != 0:
            raise Failure(f"in the guest, {' '.join(words)} ended with {reply['status']}: "
                          f"{reply['output'].strip()[-300:]}")
        return reply["output"]

    def start(self, words):
        """Starts a program; returns its number. What a program of perftest measures costs an emulated processor even
        more."""
        reply = self.request({"start": words, "env": calm_clock(self.rig.build, words)}, 10)
        if "number" not in reply:
            raise Failure(f"the guest did not start {' '.join(words)}: {reply['output']}")
        return reply["number"]

    def finish(self, number, limit):
        """Waits for a program that was started: (status, output); None: it was killed."""
        reply = self.request({"finish": number, "limit": limit}, limit)
        return reply["status"], reply["output"]

    def output(self, number):
        """The output of a program so far: (status, output); status None: it is running."""
        reply = self.request({"output": number}, 10)
        return reply["status"], reply["output"]

    def said(self, number):
        """The end of a program's output, for a message."""
        status, output = self.output(number)
        return f"{'it runs' if status is None else f'ended with {status}'}: {output.strip()[-200:]}"

    def stands(self, number):
        """How far a program has come that takes too long, for a message."""
        said = " / ".join(self.said(number).splitlines())
        return f"{said}; its threads: {self.request({'threads': number}, 10)['output']}"

    def signal(self, number, with_what):
        self.request({"signal": number, "with": int(with_what)}, 10)

    def listens(self, port, number, limit=30):
        """Waits until the program of this number (or a child of it) listens."""
        def there():
            if self.request({"listens": port}, 10)["listens"]:
                return True
            if self.output(number)[0] is not None:
                raise Failure(f"in the guest, a program ended before it listened: "
                              f"{self.said(number)}")
            return False
        wait_until(f"port {port} of the guest", limit, there, 0.05)

    def end(self):
        self.qemu.end()
