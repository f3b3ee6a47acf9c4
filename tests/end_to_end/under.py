# SPDX-License-Identifier: BSD-3-Clause
"""Programs under tools that look into them or confine them: valgrind, strace, gdb, setpriv, bubblewrap."""

import os
import shutil
import subprocess

from programs import NOBODY, run_pair_text, start_pair
from rig import Failure, Skipped, case_of, wait_until

CASES = []
case = case_of(CASES)

PINGPONG = "ibv_rc_pingpong -n 50 -c -e -s 200000"
SANDBOX = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-user",
           "--unshare-pid", "--unshare-ipc", "--new-session", "--die-with-parent", "--cap-drop", "ALL")


def needs(program):
    if shutil.which(program) is None:
        raise Skipped(f"{program} is not installed")


def pingpong_under(rig, *wrapper):
    """Both programs, which check what they receive, as started by `wrapper`."""
    needs(wrapper[0])
    run_pair_text(rig, PINGPONG.split(), wrappers=(wrapper, wrapper))
    return ""


@case
def valgrind(rig):
    """Memcheck finds nothing wrong in the programs, and nothing in uroce's libraries."""
    needs("valgrind")
    return pingpong_under(rig, "valgrind", "-q", "--error-exitcode=9", "--trace-children=yes")


@case
def strace(rig):
    return pingpong_under(rig, "strace", "-f", "-o", "/dev/null")


@case
def no_new_privileges(rig):
    return pingpong_under(rig, *NOBODY, "--no-new-privs", "--bounding-set=-all")


@case
def bubblewrap(rig):
    return pingpong_under(rig, *SANDBOX)


@case
def gdb(rig):
    """gdb stops programs while the engine copies to and from their memory, and writes a core file of one."""
    needs("gdb")
    core = rig.folder / "core"
    pair = start_pair(rig, "ib_write_bw -s 65536 -n 4000000".split())
    try:
        for program in pair:
            wait_until(f"{program.name} with queues", 30, lambda p=program: "memfd:uroce" in
                       open(f"/proc/{p.pid}/maps", encoding="utf-8").read())
            text = gdb_says(program, "info threads", f"generate-core-file {core}")
            size = core.stat().st_blocks * 512
            if not program.alive() or size > 1 << 30:
                raise Failure(f"{program.name}: a core file of {size >> 20} MiB: {text[-200:]}")
    finally:
        for program in pair:
            program.end()
        core.unlink(missing_ok=True)
    rig.check_healthy()
    return f"a core file of {size >> 20} MiB"


def gdb_says(program, *commands):
    words = ["gdb", "-batch", "-nx", "-p", str(program.pid)]
    for command in [*commands, "detach"]:
        words += ["-ex", command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "DEBUGINFOD_URLS": ""})
    if "detached" not in done.stdout:
        raise Failure(f"gdb: {(done.stdout + done.stderr)[-300:]}")
    return done.stdout


def cases():
    for name, run in CASES:
        yield "same", f"under/{name}", run, False
