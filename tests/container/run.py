#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What docs/containers.md claims, tried with plain namespaces, as there may be no container engine: an engine
and programs in roots, namespaces, capabilities and seccomp filters of their own, which share a folder.
As root: tests/container/run.py [BUILD]. The last line is 'N passed, N failed, N skipped'."""

import ctypes
import ctypes.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROFILE = ROOT / "config/container/seccomp-engine.json"
LIMIT = 60
ALLOW, ERRNO_EPERM = 0x7fff0000, 0x00050001

# A root of its own, pivoted into; the only part of the host that can be written is the shared folder.
ENTER = """
set -eu
new=$(mktemp -d)
mount --make-rprivate /
mount --rbind / "$new"
mount --make-rprivate "$new"
mount -t tmpfs tmpfs "$new/run"
mkdir "$new/run/uroce" "$new/run/dpdk" "$new/run/old"
mount --bind "$SHARED" "$new/run/uroce"
mount -o remount,bind,ro "$new"
mount -t proc proc "$new/proc"
cd "$new"
pivot_root . run/old
umount -l /run/old
exec "$@"
"""


def contained(words, capabilities, user, namespaces):
    """Words that run `words` like a container: namespaces, a root, capabilities, a user."""
    bounding = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    identity = ["--reuid", str(user), "--regid", str(user), "--clear-groups"] if user else []
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--cgroup",
            *namespaces, "bash", "-c", ENTER, "bash", "setpriv", f"--bounding-set={bounding}",
            "--inh-caps=-all", "--no-new-privs", *identity, *words]


def load_filter():
    """The engine's profile, as a container engine would load it."""
    lib = ctypes.CDLL(ctypes.util.find_library("seccomp") or "libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    lib.seccomp_init.argtypes = [ctypes.c_uint32]
    lib.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int,
                                           ctypes.c_uint, ctypes.c_void_p]
    lib.seccomp_load.argtypes = [ctypes.c_void_p]
    context = lib.seccomp_init(ERRNO_EPERM)
    for group in json.loads(PROFILE.read_text())["syscalls"]:
        assert group["action"] == "SCMP_ACT_ALLOW"
        for name in group["names"]:
            number = lib.seccomp_syscall_resolve_name(name.encode())
            assert number != -1, f"there is no system call {name}"
            assert lib.seccomp_rule_add_array(context, ALLOW, number, 0, None) == 0, name
    assert lib.seccomp_load(context) == 0, "the filter is not loaded"


class Container:
    def __init__(self, name, words, shared, capabilities=(), user=0, namespaces=(), env=None):
        self.name = name
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            contained(words, capabilities, user, namespaces), stdout=self.log,
            stderr=subprocess.STDOUT, start_new_session=True,
            env=dict(os.environ, SHARED=str(shared), **(env or {})))

    def text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def succeed(self):
        status = self.process.wait(LIMIT)
        assert status == 0, f"{self.name}: status {status}: {self.text()[-800:]}"
        return self.text()

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(LIMIT)


def wait_until(true, what, container):
    until = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < until and container.process.poll() is None, \
            f"{what} does not come: {container.text()[-800:]}"
        time.sleep(0.05)


class Rig:
    """An engine in a container, and a folder that it shares with others."""

    def __init__(self, build, more=(), capabilities=("sys_ptrace",), namespaces=("--net",)):
        self.build = build
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-container-"))
        self.folder.chmod(0o755)
        words = [sys.executable, "-B", __file__, "--filtered", str(build / "apps/uroced"), "--no-huge",
                 "--no-telemetry", "-m256", f"--file-prefix=uroce-container-{os.getpid()}", "--",
                 "--socket", "/run/uroce/uroced.sock", "--socket-mode", "0666", *more]
        self.engine = Container("engine", words, self.folder, capabilities, 0, namespaces)
        socket = self.folder / "uroced.sock"
        wait_until(socket.exists, "the socket", self.engine)

    def program(self, name, words, user=1000, files="preload"):
        run = [str(self.build / "apps/uroce"), "run", "--socket", "/run/uroce/uroced.sock", "--files",
               files, "--", *words]
        return Container(name, run, self.folder, (), user, (), {"HOME": "/"})

    def end(self):
        self.engine.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def listening(port):
    wanted = f":{port:04X} "
    return any(wanted in line.split("rem")[0] and " 0A " in line
               for name in ("tcp", "tcp6")
               for line in pathlib.Path("/proc/net", name).read_text().splitlines()[1:])


def bandwidth(rig, port):
    words = ["ib_write_bw", "-d", "uroce0", "-x", "1", "-F", "-n", "200", "-p", str(port)]
    server = rig.program("server", words)
    try:
        wait_until(lambda: listening(port), "the server", server)
        client = rig.program("client", [*words, "127.0.0.1"])
        try:
            client.succeed()
        finally:
            client.end()
        server.succeed()
    finally:
        server.end()


def with_rig(test, **more):
    def run(build):
        rig = Rig(build, **more)
        try:
            test(rig)
        finally:
            rig.end()
    return run


def two_programs(rig):
    """Programs of two users' containers, in other pid namespaces than the engine's."""
    bandwidth(rig, 21501)


def devices_are_seen(rig):
    text = rig.program("ibv_devinfo", ["ibv_devinfo"]).succeed()
    assert "uroce0" in text, text


def killed_program(rig):
    """A killed container disturbs no other."""
    words = ["ib_write_bw", "-d", "uroce0", "-x", "1", "-F", "-p", "21502"]
    victim = rig.program("victim", words)
    wait_until(lambda: listening(21502), "the victim", victim)
    victim.end()
    bandwidth(rig, 21503)


def forbidden(rig):
    """The engine's filter forbids what no engine does: it is really there."""
    status = pathlib.Path(f"/proc/{engine_pid(rig)}/status").read_text()
    assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status, status
    allowed = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd")), 16)
    assert allowed == 1 << 19, f"{allowed:#x}: not only CAP_SYS_PTRACE"


def engine_pid(rig):
    """The last of the chain of children."""
    pid = rig.engine.process.pid
    while True:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not children:
            return pid
        pid = int(children[0])


CASES = [("two_programs", with_rig(two_programs)), ("devices", with_rig(devices_are_seen)),
         ("killed_program", with_rig(killed_program)), ("confined", with_rig(forbidden))]


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--filtered":
        load_filter()
        os.execv(sys.argv[2], sys.argv[2:])
    if os.geteuid() != 0:
        print("namespaces need root")
        return 77
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    failed = 0
    for name, run in CASES:
        try:
            run(build)
            print(f"PASS {name}", flush=True)
        except (AssertionError, subprocess.TimeoutExpired) as why:
            failed += 1
            print(f"FAIL {name}: {why}", flush=True)
    print(f"{len(CASES) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
