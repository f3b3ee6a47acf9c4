# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of a user: uroced reports each in one line and ends with a status; no object stays behind."""

import contextlib
import signal

from nic_guest import HUGEPAGES
from rig import Failure
from wire import Setup

ANOTHER_SOCKET = "/tmp/other.sock"  # any user may make it
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# Groups that a process holds, engines' folders and sockets, hugepages in use, and the card's driver.
LEFT = """
ls -l /proc/[0-9]*/fd 2>/dev/null | grep -o '/dev/vfio/[0-9].*'
ls -d /run/dpdk/uroce-* /tmp/dpdk/uroce-* $2* 2>/dev/null
cd /sys/kernel/mm/hugepages/hugepages-2048kB
echo $(($(cat nr_hugepages) - $(cat free_hugepages))) hugepages
echo driver $(readlink /sys/bus/pci/devices/$1/driver)
"""


def left(wire):
    return set(wire.guest.shell(LEFT, wire.guest.bdf, ANOTHER_SOCKET, limit=120).splitlines())


def refused(wire, words, *texts, alone=False):
    """uroced must end by itself, with a status, and one line of its own, which has these texts; `alone`: EAL says nothing."""
    before = left(wire)
    status, output = wire.guest.finish(wire.guest.start(words), 90)
    lines = output.strip().splitlines() or [""]
    if status in (0, "timeout") or status < 0:
        raise Failure(f"uroced ended with {status}: {lines[-1]}")
    own = [line for line in lines if line.startswith("uroced: ")]
    if len(own) != 1 or (alone and len(lines) != 1):
        raise Failure(f"uroced did not say one line: {' / '.join(lines[-4:])}")
    for text in texts:
        if text not in own[0]:
            raise Failure(f"uroced's line has no '{text}': {own[0]}")
    new = left(wire) - before  # it may remove what a killed engine left
    if new:
        raise Failure(f"it left this behind: {', '.join(new)}")
    return own[0].removeprefix("uroced: ")


def words(wire, *options, **settings):
    return wire.guest.engine_words(Setup(options=options, **settings), socket=ANOTHER_SOCKET)


def mtu(wire):
    return refused(wire, words(wire, mtu=9978), wire.guest.bdf, "MTU", "not 9978")


def descriptors(wire):
    return refused(wire, words(wire, "--descriptors", "8192"), wire.guest.bdf, "descriptors", "not 8192")


@contextlib.contextmanager
def bound_to(wire, driver):
    """The card is bound to this driver; "": to none."""
    guest = wire.guest
    if driver:
        guest.bind(driver)
    else:
        guest.shell("echo $1 > /sys/bus/pci/devices/$1/driver/unbind", guest.bdf)
    try:
        yield
    finally:
        guest.bind("vfio-pci")


def doctor(wire, *options):
    """(status, output) of `uroce doctor` for the card."""
    guest = wire.guest
    return guest.finish(guest.start([str(guest.build / "apps/uroce"), "doctor", "--port",
                                     guest.bdf, "--socket", ANOTHER_SOCKET, *options]), 60)


def doctor_finds(wire, check, text):
    status, output = doctor(wire)
    lines = [line for line in output.splitlines() if line.split()[:2] == ["missing", check]]
    if status != 1 or len(lines) != 1 or text not in lines[0] or "to fix it:" not in lines[0]:
        raise Failure(f"uroce doctor ended with {status} and said: {output.strip()[-300:]}")


def wrong_driver(wire):
    with bound_to(wire, wire.nic.kernel):
        doctor_finds(wire, "driver", wire.nic.kernel)
        return refused(wire, words(wire), wire.guest.bdf, wire.nic.kernel, "vfio-pci", alone=True)


def no_driver(wire):
    with bound_to(wire, ""):
        doctor_finds(wire, "driver", "no driver")
        return refused(wire, words(wire), wire.guest.bdf, "no driver", "vfio-pci", alone=True)


def in_use(wire):
    """Another engine, which goes on, has the card."""
    wire.use(Setup())
    line = refused(wire, words(wire), wire.guest.bdf, "in use by process", alone=True)
    wire.guest.check_engine()
    wire.measured("ib_write_bw -s 4096 -n 20")
    return line


def no_access(wire):
    return refused(wire, [*NOBODY, *words(wire)], wire.guest.bdf, "no access to /dev/vfio/", "chown", alone=True)


def no_card(wire):
    line = [word.replace(wire.guest.bdf, "0000:7f:00.0") for word in words(wire)]
    return refused(wire, line, "0000:7f:00.0", "no such PCI device", alone=True)


def not_named(wire):
    line = words(wire)
    at = line.index("-a")
    return refused(wire, line[:at] + line[at + 2:], wire.guest.bdf, "-a")


@contextlib.contextmanager
def hugepages(wire, count):
    set_to = "echo $1 > /proc/sys/vm/nr_hugepages; cat /proc/sys/vm/nr_hugepages"
    try:
        if int(wire.guest.shell(set_to, str(count), limit=120)) != count:
            raise Failure(f"the guest does not have exactly {count} hugepages")
        yield
    finally:
        wire.guest.shell(set_to, str(HUGEPAGES), limit=180)


def few_hugepages(wire):
    with hugepages(wire, 8):
        return refused(wire, words(wire), "memory", "hugepages")


def no_hugepages(wire):
    """This is not an error: uroced takes ordinary memory. `uroce doctor` reports that it is slow."""
    with hugepages(wire, 0):
        status, output = doctor(wire)
        if "slow     hugepages" not in output:
            raise Failure(f"uroce doctor ended with {status} and said: {output.strip()[-300:]}")
        wire.use(Setup())
        remark = wire.measured("ib_write_bw -s 65536 -n 40")
        wire.guest.end_engine()
    return remark


def no_link(wire):
    """uroced serves, and the link may come later. uroced and the doctor report that there is none."""
    guest = wire.guest
    guest.set_link(False)
    engine = guest.start(words(wire))
    try:
        line = guest.says(engine, "no link", 60)
        if guest.statistics(ANOTHER_SOCKET)["active"]:
            raise Failure("the port is active without a link")
        doctor_finds(wire, "link", "no link")
        guest.set_link(True)
        guest.await_engine(engine, socket=ANOTHER_SOCKET)
    finally:
        guest.set_link(True)
        guest.signal(engine, signal.SIGTERM)
        guest.finish(engine, 30)
    return line


def all_is_well(wire):
    """`uroce doctor` finds nothing missing in a guest that was prepared as docs/operations.md says."""
    status, output = doctor(wire, "--all")
    if status != 0 or "\nmissing" in f"\n{output}":
        raise Failure(f"uroce doctor ended with {status}: {output.strip()[-400:]}")
    return output.strip().splitlines()[-1]
