# SPDX-License-Identifier: BSD-3-Clause
"""A user who has docs/operations.md alone: its commands, as they stand there, prepare a card and start an engine."""

import pathlib
import re
import signal

from nic_guest import HUGEPAGES
from programs import GID
from rig import Failure

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/operations.md"
SOCKET = "/run/uroce/uroced.sock"  # that of an engine which names none
# The guest has this machine's files, which lack the modules of its kernel: modprobe takes them where they were unpacked.
MODULES = """set -e
release=$(uname -r)
tree=$1/linux-image-$release
[ -e $tree/lib/modules/$release/modules.dep ] || depmod -b $tree $release
echo "-d $tree"
"""
# What a user replaces by the own card, cores and address.
THEIR_OWN = {"0000:03:00.0": "", "-l 2,3": "-l 0,1", "192.168.7.1/24": "10.7.0.2/24"}


def own(wire, text):
    for theirs, ours in THEIR_OWN.items():
        text = text.replace(theirs, ours or wire.guest.bdf)
    return text


def block(wire, first):
    """The lines between fences that begin with `first`, for this card."""
    found = [text for text in re.findall(r"^```\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
             if text.startswith(first)]
    if len(found) != 1:
        raise Failure(f"{PAGE.name} has {len(found)} blocks that begin with '{first}'")
    return own(wire, found[0])


def sentence(wire, pattern):
    """A command within the text."""
    found = re.findall(f"`({pattern})`", PAGE.read_text())
    if not found:
        raise Failure(f"{PAGE.name} has no `{pattern}`")
    return own(wire, found[0])


def as_user(wire, commands):
    """The words of a shell that finds uroce's programs, and stops at the first command that fails."""
    return ["sh", "-ec", f"PATH={wire.guest.build}/apps:$PATH\n{commands}"]


def pingpong(wire):
    words = ["ibv_rc_pingpong", "-d", "uroce0", "-g", GID["v4"], "-p", str(wire.rig.port()), "-n", "60", "-c"]
    server = wire.rig.program("a", words, name="ibv_rc_pingpong-server")
    try:
        server.await_listening(int(words[6]))
        number = wire.guest.verbs([*words, "10.8.0.1"], SOCKET)
        wire.succeed(number, words[0], 60)
        server.succeed(30)
    finally:
        server.end()


def documented(wire):
    guest, engine = wire.guest, None
    try:
        if wire.nic.kernel:
            guest.bind(wire.nic.kernel)
        modules = guest.shell(MODULES, str(guest.build / "interop")).strip()
        guest.run(as_user(wire, f"export MODPROBE_OPTIONS='{modules}'\n{block(wire, 'modprobe vfio-pci')}"), 180)
        said = guest.run(as_user(wire, sentence(wire, r"uroce doctor --port [0-9a-f:.]+")), 60)
        engine = guest.start(as_user(wire, "exec " + block(wire, "uroced -a ")))
        guest.await_engine(engine, socket=SOCKET)
        pingpong(wire)
    finally:
        if engine is not None:
            guest.signal(engine, signal.SIGTERM)
            guest.finish(engine, 30)
        guest.bind("vfio-pci")
        guest.shell("echo $1 > /proc/sys/vm/nr_hugepages", str(HUGEPAGES), limit=180)
    return said.strip().splitlines()[-1]
