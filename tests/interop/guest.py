# SPDX-License-Identifier: BSD-3-Clause
"""A Linux guest under QEMU whose kernel is the peer: rdma_rxe on a tap, nothing but Debian packages.

The guest has no disk: an initramfs of busybox and some modules mounts this machine's root, read
only, over 9p, with a tmpfs on top of it, so that every program that is installed here runs there.
A small server in it (guest_server.py) executes what the cases ask for.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))

from rig import Failure, Process, sh, wait_until  # noqa: E402  (the path comes first)

HERE = pathlib.Path(__file__).resolve().parent
SERVER_PORT = 7471
MODULES = ["crc32_generic", "crc32_pclmul", "virtio_pci", "virtio_net", "9p", "9pnet_virtio",
           "overlay", "8021q", "sch_netem", "rdma_rxe", "ib_uverbs", "rdma_ucm", "ib_umad"]

INIT = """#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
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
echo 0 > /new/proc/sys/net/ipv6/conf/eth0/accept_dad
ip address add $v4/24 dev eth0
ulimit -l unlimited
exec chroot /new /usr/bin/python3 -B $server
"""


def kernel(folder):
    """Debian's kernel package, unpacked: (image, modules, release). Downloaded once."""
    package = re.search(r"Depends: (linux-image-\S+)", sh("apt-cache", "depends",
                                                          "linux-image-amd64"))[1]
    release = package.removeprefix("linux-image-")
    tree = folder / package
    if not (tree / "ready").exists():
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        done = subprocess.run(["apt-get", "download", "-q", package], cwd=tree,
                              capture_output=True, text=True, timeout=300)
        found = list(tree.glob("*.deb"))
        if done.returncode != 0 or not found:
            raise Failure(f"{package} cannot be downloaded: {done.stderr.strip()[-200:]}")
        subprocess.run(["dpkg", "-x", found[0], tree], check=True, timeout=120)
        found[0].unlink()
        subprocess.run(["/sbin/depmod", "-b", tree, release], check=True, timeout=120)
        (tree / "ready").touch()
    return tree / f"boot/vmlinuz-{release}", tree, release


def module_files(tree, release):
    """The files of MODULES and of what they need, in the order in which they are loaded."""
    files = []
    for name in MODULES:
        out = sh("/sbin/modprobe", "-d", str(tree), "-S", release, "--show-depends", name)
        for line in out.splitlines():
            word = line.split()
            if word[0] == "insmod" and word[1] not in files:
                files.append(word[1])
    return files


def initramfs(folder):
    """(kernel image, initramfs), made once for each kernel release."""
    image, tree, release = kernel(folder)
    made = folder / f"initramfs-{release}.cpio"
    stage = folder / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    (stage / "bin").mkdir(parents=True)
    (stage / "modules").mkdir()
    shutil.copy2("/bin/busybox", stage / "bin/busybox")
    order = []
    for path in module_files(tree, release):
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


class Guest:
    """A booted guest at the other end of the tap `iface` in the namespace of `side`."""

    def __init__(self, rig, side, iface, v4, v6, mtu, folder):
        self.rig, self.side, self.iface, self.address = rig, side, iface, v4
        self.mtu, self.v6 = mtu, v6
        self.image, self.initramfs = initramfs(folder)
        self.boot()

    def boot(self, limit=120):
        line = (f"console=ttyS0 quiet panic=-1 uroce.mtu={self.mtu} uroce.v4={self.address} "
                f"uroce.server={HERE / 'guest_server.py'}")
        words = [*self.rig.inside(self.side), "qemu-system-x86_64", "-accel", "tcg,thread=multi",
                 "-cpu", "max", "-smp", "2", "-m", "2048", "-nographic", "-no-reboot",
                 "-nodefaults", "-serial", "stdio",
                 "-kernel", str(self.image), "-initrd", str(self.initramfs), "-append", line,
                 "-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
                 "-device", "virtio-9p-pci,fsdev=root,mount_tag=host",
                 "-netdev", f"tap,id=net,ifname={self.iface},script=no,downscript=no",
                 "-device", "virtio-net-pci,netdev=net"]
        self.qemu = Process(self.rig, "guest", words)
        self.qemu.expect("guest server serves", limit)
        # busybox knows no nodad
        self.run(["ip", "address", "add", f"{self.v6}/64", "dev", "eth0", "nodad"])

    def request(self, what, limit):
        """One question to the server; it is asked from the namespace of our side."""
        done = subprocess.run([*self.rig.inside(self.side), sys.executable, "-B",
                               str(HERE / "guest_server.py"), "ask", self.address],
                              input=json.dumps(what), capture_output=True, text=True,
                              timeout=limit + 30)
        if done.returncode != 0:
            raise Failure(f"the guest does not answer: {done.stderr.strip()[-200:]}")
        return json.loads(done.stdout)

    def run(self, words, limit=30, check=True):
        """Executes a program and waits for it: its output."""
        reply = self.request({"run": words, "limit": limit}, limit)
        if check and reply["status"] != 0:
            raise Failure(f"in the guest, {' '.join(words)} ended with {reply['status']}: "
                          f"{reply['output'].strip()[-300:]}")
        return reply["output"]

    def start(self, words):
        """Starts a program; its number."""
        return self.request({"start": words}, 10)["number"]

    def finish(self, number, limit):
        """Waits for a program that was started: (status, output); None: it was ended."""
        reply = self.request({"finish": number, "limit": limit}, limit)
        return reply["status"], reply["output"]

    def listens(self, port, limit=30):
        wait_until(f"port {port} of the guest", limit,
                   lambda: self.request({"listens": port}, 10)["listens"], 0.05)

    def end(self):
        self.qemu.end()
