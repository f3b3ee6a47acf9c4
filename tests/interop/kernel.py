# SPDX-License-Identifier: BSD-3-Clause
"""The guest's kernel: Debian's package, downloaded and unpacked once, and its modules.

A guest is emulated, so what can be done once on this machine is not done in the guest at each boot."""

import lzma
import os
import pathlib
import re
import shutil
import struct
import subprocess

from rig import Failure, sh

APT_LISTS = pathlib.Path("/var/lib/apt/lists")  # this folder changes when apt learns of other packages
# What is unpacked: these folders of modules, an eighth of the package.
FOLDERS = ["arch", "crypto", "fs/9p", "fs/configfs", "fs/fscache", "fs/netfs", "fs/overlayfs", "lib", "net",
           "virt", "drivers/infiniband", "drivers/net/*.ko", "drivers/net/ethernet/intel/e1000*",
           "drivers/net/vmxnet3", "drivers/vfio", "drivers/virtio"]
WANTED = ["./boot/vmlinuz-*", "./lib/modules/*/modules.*",
          *(f"./lib/modules/*/kernel/{folder}" for folder in FOLDERS)]


def package_name(folder):
    """Debian's newest kernel package of this release that apt knows; None: it knows none. The answer is kept as
    long as apt's lists are the same, because where apt keeps no cache each question costs it a second."""
    lists = APT_LISTS.stat().st_mtime_ns if APT_LISTS.exists() else 0
    note = folder / "newest"
    if note.exists():
        package, _, of = note.read_text().partition(" ")
        if of == str(lists):
            return package
    done = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True,
                          text=True, timeout=60)
    found = re.search(r"Depends: (linux-image-\S+)", done.stdout)
    if found:
        folder.mkdir(parents=True, exist_ok=True)
        note.write_text(f"{found[1]} {lists}")
    return found and found[1]


def is_ready(tree):
    mark = tree / "ready"
    return mark.exists() and mark.read_text() == "\n".join(WANTED)


def unpack(package, tree):
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as files:
        subprocess.run(["tar", "-x", "--wildcards", "--no-wildcards-match-slash", *WANTED], cwd=tree, stdin=files.stdout, check=True,
                       timeout=300)


def download(tree, package):
    """Downloads and unpacks the package; returns what went wrong."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    done = subprocess.run(["apt-get", "download", "-q", package], cwd=tree, capture_output=True,
                          text=True, timeout=300)
    found = list(tree.glob("*.deb"))
    if done.returncode != 0 or not found:
        return done.stderr.strip()[-200:] or "it is not there"
    unpack(found[0], tree)
    found[0].unlink()
    release = package.removeprefix("linux-image-")
    subprocess.run(["depmod", "-b", tree, release], check=True, timeout=120)
    image = tree / f"boot/vmlinuz-{release}"
    (tree / f"boot/vmlinux-{release}").write_bytes(uncompressed(image.read_bytes()))
    (tree / "ready").write_text("\n".join(WANTED))
    return None


def uncompressed(image):
    """What a bzImage unpacks, an ELF file: emulated, this takes a third of a boot. Linux's
    Documentation/x86/boot.rst says where it is. An image that xz did not compress stays as it is."""
    sectors = image[0x1f1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    payload = image[start:start + length]
    if not payload.startswith(b"\xfd7zXZ\0"):
        return image
    return lzma.LZMADecompressor().decompress(payload)  # the size is behind it


def kernel(folder):
    """Debian's kernel package, unpacked: (image, modules, release). It is downloaded once."""
    package = package_name(folder)
    if package is None or not is_ready(folder / package):
        # apt's lists may be old or missing, as in a fresh container
        wrong = "apt knows no linux-image-amd64" if package is None else download(folder / package,
                                                                                  package)
        if wrong:
            subprocess.run(["apt-get", "-qq", "update"], capture_output=True, timeout=300)
            package = package_name(folder)
            wrong = package and download(folder / package, package)
        if package is None or wrong:
            raise Failure(f"the guest's kernel, Debian's package {package or 'linux-image-amd64'}, "
                          f"cannot be downloaded (network, /etc/apt/sources.list): {wrong or ''}")
    tree = folder / package
    release = package.removeprefix("linux-image-")
    return tree / f"boot/vmlinux-{release}", tree, release


def module_files(tree, release, modules):
    """The files of these modules and of their dependencies, in load order."""
    files = []
    for name in modules:
        out = sh("modprobe", "-d", str(tree), "-S", release, "--show-depends", name)
        for line in out.splitlines():
            word = line.split()
            if word[0] == "insmod" and word[1] not in files:
                files.append(word[1])
    return files
