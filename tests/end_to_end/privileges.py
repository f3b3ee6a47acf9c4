# SPDX-License-Identifier: BSD-3-Clause
"""The privileges of a serving engine (docs/security.md), as the kernel reports them for each of its
threads, while it serves programs of other users."""

import os
import pathlib

import rig as rigs
from programs import NOBODY, run_pair
from rig import ADDRESS, Failure, Process, Rig

CAPABILITIES = {12: "CAP_NET_ADMIN", 13: "CAP_NET_RAW", 14: "CAP_IPC_LOCK",
                19: "CAP_SYS_PTRACE"}
WITHOUT_A_PORT = {"CAP_SYS_PTRACE"}
WITH_A_PORT = set(CAPABILITIES.values())


def names(mask):
    return {CAPABILITIES.get(bit, f"capability {bit}") for bit in range(64) if mask >> bit & 1}


def threads(process):
    """The status of each thread, from /proc."""
    for task in pathlib.Path(f"/proc/{process.popen.pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        yield dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def expect(process, capabilities):
    """Every thread has at most these capabilities, cannot gain others, and has a seccomp filter."""
    seen = 0
    for status in threads(process):
        seen += 1
        name = status["Name"]
        for kind in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            surplus = names(int(status[kind], 16)) - capabilities
            if surplus:
                raise Failure(f"thread {name} has {sorted(surplus)} in {kind}")
        if status["NoNewPrivs"] != "1" or status["Seccomp"] != "2":
            raise Failure(f"thread {name}: NoNewPrivs {status['NoNewPrivs']}, "
                          f"Seccomp {status['Seccomp']}")
    if seen < 3:
        raise Failure(f"only {seen} threads were checked")
    return seen


def without_a_port(build):
    """As root without a port; it serves root's programs and another user's."""
    with rigs.same_host(build) as rig:
        run_pair(rig, ["ib_write_bw", "-n", "1000"], "v4")
        run_pair(rig, ["ib_write_bw", "-n", "1000"], "v4", [NOBODY, NOBODY])
        return f"{expect(rig.engines['a'], WITHOUT_A_PORT)} threads"


def with_a_port(build):
    """As root on a Linux interface: it keeps network capabilities."""
    with Rig(build) as rig:
        for side in "ab":
            rig.namespace(side)
        rig.veth("wire", 4200)
        for side in "ab":
            rig.ip(side, "address", "add", f"{ADDRESS[side][0]}/24", "dev", "wire")
            rig.engine(side, options=["--netdev", "wire"])
        rig.sides = ("a", "b")
        rig.control = ADDRESS["a"][0]
        rig.mtu = 4096
        run_pair(rig, ["ib_write_bw", "-n", "1000"], "v4")
        return f"{expect(rig.engines['a'], WITH_A_PORT)} threads"


def of_a_group(build):
    """--socket-group takes effect without CAP_CHOWN, and members of the group are served."""
    with Rig(build) as rig:
        rig.namespace("a")
        group = 4791
        rig.engines["a"] = Process(rig, "uroced-a", [
            *rig.inside("a"), str(build / "apps/uroced"), "--no-huge", "--", "--socket",
            rig.socket("a"), "--socket-mode", "0660", "--socket-group", str(group), "--ip",
            f"{ADDRESS['a'][0]}/24"])
        rig.await_engine("a")
        if os.stat(rig.socket("a")).st_gid != group:
            raise Failure(f"the socket is of group {os.stat(rig.socket('a')).st_gid}")
        expect(rig.engines["a"], WITHOUT_A_PORT)
        for gid, served in ((group, True), (group + 1, False)):
            member = ["setpriv", "--reuid=65534", f"--regid={gid}", "--clear-groups"]
            program = rig.program("a", ["ibv_devinfo"], member)
            if (program.wait(20) == 0) != served:
                raise Failure(f"group {gid}: {program.output()!r}")


def not_confined(build):
    """--confine off keeps all capabilities of the engine."""
    with Rig(build) as rig:
        rig.namespace("a")
        rig.engine("a", options=["--ip", f"{ADDRESS['a'][0]}/24", "--confine", "off"])
        for status in threads(rig.engines["a"]):
            if status["CapEff"] != status["CapBnd"] or status["Seccomp"] != "0":
                raise Failure(f"thread {status['Name']} was confined")


CASES = [("without-a-port", without_a_port), ("with-a-port", with_a_port), ("of-a-group", of_a_group),
         ("not-confined", not_confined)]
