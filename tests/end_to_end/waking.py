# SPDX-License-Identifier: BSD-3-Clause
"""The time slice of an engine's lcores (docs/decisions/0020-waking.md), as the kernel reports it, and what is left of a
core for a program beside a busy engine."""

import ctypes
import os
import pathlib
import platform
import shutil
import struct
import sys

import rig as rigs
from programs import NOBODY, start_pair
from rig import ADDRESS, Failure, Process, Rig, Skipped, case_of, wait_until

SLICE = 100_000  # ns: LIMIT_SLICE_US
GETATTR = {"x86_64": 315, "aarch64": 275}
CASES = []


def scheduling(tid):
    """Policy, nice value and time slice (ns; 0 on kernels without them) of a thread."""
    number = GETATTR.get(platform.machine())
    if number is None:
        raise Skipped("the number of sched_getattr is unknown for this processor")
    attributes = ctypes.create_string_buffer(56)
    if ctypes.CDLL(None, use_errno=True).syscall(number, int(tid), attributes, 56, 0) != 0:
        raise Failure(f"sched_getattr: {os.strerror(ctypes.get_errno())}")
    _, policy, _, nice, _, runtime, *_ = struct.unpack("<IIQiIQQQII", attributes.raw)
    return policy, nice, runtime


def lcore_thread(process):
    """It gets its name after it has begun, perhaps after the engine has said that it serves."""
    def find():
        for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
            try:
                if (task / "comm").read_text().strip() == "uroce-lcore":
                    return int(task.name)
            except OSError:
                pass  # the thread has ended
        return None
    return wait_until("a thread uroce-lcore", 20, find)


def kernel_has_slices():
    return scheduling(0)[2] != 0


def begun(rig):
    """The statistics once the lcore polls: an engine may serve before its lcore has asked for the slice."""
    def polls():
        now = rig.statistics("a")
        return now["polls"] and now
    return wait_until("a poll of the lcore", 20, polls)


def expect(rig, priority, slice_is_short, says=""):
    shown = begun(rig)["priority"]
    policy, nice, runtime = scheduling(lcore_thread(rig.engines["a"]))
    said = [line for line in rig.engines["a"].output().splitlines() if "time slice" in line]
    if (nice, runtime == SLICE, shown) != (os.getpriority(os.PRIO_PROCESS, 0), slice_is_short, priority):
        raise Failure(f"policy {policy}, nice {nice}, slice {runtime} ns, '{shown}'")
    if len(said) != bool(says) or says not in "".join(said):
        raise Failure(f"it says {said}")
    return f"slice {runtime} ns, nice {nice}"


def expect_auto(rig):
    if kernel_has_slices():
        return expect(rig, "slice", True)
    return expect(rig, "unknown to the kernel", False, "unknown to the kernel")


def begin(rig, before=(), options=()):
    """An engine that nobody can run, too: its program is where others may read it."""
    program = shutil.copy2(rig.build / "apps/uroced", rig.tools / "apps/uroced")
    os.chmod(program, 0o755)
    rig.namespace("a")
    rig.folder.chmod(0o777)
    rig.engines["a"] = Process(rig, "uroced-a", [
        *rig.inside("a"), *before, program, "--no-huge", "--", "--socket", rig.socket("a"), "--ip",
        f"{ADDRESS['a'][0]}/24", *options], env={"XDG_RUNTIME_DIR": str(rig.folder)})
    rig.await_engine("a")


@case_of(CASES)
def as_root(build):
    with Rig(build) as rig:
        begin(rig)
        return expect_auto(rig)


@case_of(CASES)
def as_nobody(build):
    """No privilege is needed."""
    with Rig(build) as rig:
        begin(rig, NOBODY)
        return expect_auto(rig)


@case_of(CASES)
def priority_normal(build):
    with Rig(build) as rig:
        begin(rig, options=["--priority", "normal"])
        return expect(rig, "normal", False)


@case_of(CASES)
def another_policy(build):
    """What a user chose stays, and a line says what that means."""
    with Rig(build) as rig:
        begin(rig, ["chrt", "--batch", "0"])
        if scheduling(lcore_thread(rig.engines["a"]))[0] != 3:
            raise Failure("the policy is not SCHED_BATCH any more")
        return expect(rig, "another policy", False, "another policy")


def ran(pid, tid):
    """How long a thread has run, in seconds."""
    return int(pathlib.Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0]) / 1e9


@case_of(CASES)
def share_of_a_core(build):
    """A program that never sleeps has as much of the engine's core as the engine, while two others keep the engine busy
    from another core. On a busy machine these two would be too slow for that, so they all come before what runs beside."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skipped("one processor only")
    with rigs.same_host(build, ["--lcores", f"0@{cpus[0]}"], favoured=True) as rig:
        engine, tid = rig.engines["a"].pid, lcore_thread(rig.engines["a"])
        others = ("taskset", "-c", str(cpus[1]))
        for program in start_pair(rig, ["ib_write_bw", "-D", "60", "-s", "65536"], "v4", (others, others)):
            pass
        before = ran(engine, tid)
        wait_until("traffic", 30, lambda: ran(engine, tid) > before + 0.2)
        beside = Process(rig, "beside", ["taskset", "-c", str(cpus[0]), sys.executable, "-c", "while True: pass"])
        wait_until("the program beside", 30, lambda: ran(beside.pid, beside.pid) > 0.2)
        first = ran(engine, tid), ran(beside.pid, beside.pid)
        wait_until("the core's time", 60, lambda: ran(engine, tid) + ran(beside.pid, beside.pid) > sum(first) + 1)
        took = ran(engine, tid) - first[0], ran(beside.pid, beside.pid) - first[1]
        if not program.alive():
            raise Failure(f"the traffic ended: {program.tail()}")
        if took[0] < 0.25 or took[1] < 0.4:
            raise Failure(f"of {sum(took):.2f} s the engine had {took[0]:.2f}, the program {took[1]:.2f}")
        return f"of {sum(took):.2f} s the engine had {took[0]:.2f}, the program {took[1]:.2f}"
