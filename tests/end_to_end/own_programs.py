# SPDX-License-Identifier: BSD-3-Clause
"""The project's own programs: what uroced refuses, and what it lets only its owner use; `uroce run`, `uroce perf`."""

import os
import pathlib
import re
import signal
import subprocess

import rig as rigs
from programs import NOBODY
from rig import ADDRESS, Failure, Process, Rig, case_of, sh, wait_until

CASES = []
case = case_of(CASES)


def refused(rig, arguments, wanted):
    words = [*rig.inside("a"), str(rig.build / "apps/uroced"), *arguments]
    done = subprocess.run(words, capture_output=True, text=True, timeout=20,
                          stdin=subprocess.DEVNULL)
    lines = (done.stdout + done.stderr).splitlines()
    if done.returncode == 0:
        raise Failure(f"{' '.join(arguments)}: was accepted")
    if len(lines) != 1 or not re.search(wanted, lines[0], re.I):
        raise Failure(f"{' '.join(arguments)}: printed {lines} instead of one line with '{wanted}'")


@case
def its_owner_alone(build):
    """By default an engine serves only its owner: other users cannot open its socket or write its
    files, and it uses no network port but RoCE's (hostile H-86)."""
    with Rig(build) as rig:
        rig.namespace("a")
        rig.namespace("b")
        rig.veth("wire", 1500)
        rig.ip("a", "address", "add", f"{ADDRESS['a'][0]}/24", "dev", "wire")
        engine = [str(build / "apps/uroced"), "--no-huge", "--", "--socket", rig.socket("a"),
                  "--netdev", "wire"]
        rig.engines["a"] = Process(rig, "uroced-a", [*rig.inside("a"), "sh", "-c",
                                                     'umask 0; exec "$@"', "sh", *engine])
        rig.await_engine("a")
        socket = pathlib.Path(rig.socket("a"))
        folder = pathlib.Path(f"{socket}.files")
        files = [socket, pathlib.Path(f"{socket}.lock"), folder, *folder.rglob("*")]
        for path in files:
            mode = path.lstat().st_mode
            wrong = 0o077 if folder not in (path, *path.parents) else 0o022
            if not path.is_symlink() and mode & wrong:
                raise Failure(f"{path} has mode {mode:o}")
        stranger = rig.program("a", ["ibv_devices"], NOBODY)
        if stranger.wait(20) == 0 or "Permission denied" not in stranger.output():
            raise Failure(f"another user: {stranger.output()!r}")
        tables = sh(*rig.inside("a"), "sh", "-c", "cat /proc/net/tcp* /proc/net/udp* "
                    "/proc/net/raw*")
        ports = {int(port, 16) for port in re.findall(r"^ *\d+: [0-9A-F]+:([0-9A-F]{4})", tables,
                                                      re.MULTILINE)}
        if ports != {4791}:
            raise Failure(f"it uses the ports {ports}, not only RoCE's")
        return f"{len(files)} files"


@case
def wrong_options(build):
    """uroced refuses wrong options, each with one line that says what is allowed."""
    with Rig(build) as rig:
        rig.namespace("a")
        rig.namespace("b")
        rig.veth("wire", 4200)
        socket = str(rig.folder / "x.sock")
        small = "--vdev=net_af_packet0,iface=wire,framesz=2048"
        for arguments, wanted in [
            (["--no-such-option"], "no-such-option"),
            (["--ip", "10.0.0.1"], "10.0.0.1/"),
            (["--ip", "10.0.0.1/33"], "33|prefix"),
            (["--ip", "banana/24"], "banana"),
            (["--netdev", "nosuchif"], "nosuchif"),
            (["--port", "net_nothing0"], "net_nothing0"),
            (["--netdev", "lo", "--port", "net_af_packet0"], "--netdev.*--port|--port.*--netdev"),
            (["--idle", "often"], "often|spin"),
            (["--mtu", "12"], "mtu"),
            (["--vlan", "5000"], "vlan"),
            (["--socket-mode", "9"], "socket-mode"),
            (["--gateway", "hello"], "hello"),
            (["--config", "/nonexistent.conf"], "nonexistent"),
            (["surplus"], "surplus"),
        ]:
            refused(rig, ["--no-huge", "--", "--socket", socket, *arguments], wanted)
        refused(rig, ["--no-huge", small, "--", "--socket", socket, "--port", "net_af_packet0",
                        "--ip", "10.0.0.1/24", "--mtu", "4200"], "framesz")
        rig.engine("a")
        refused(rig, ["--no-huge", "--", "--socket", rig.socket("a")], "already|another|second")
        rig.check_healthy()
    return "16 refusals"


def uroce_run(rig, words, env=None, limit=40, wrapper=()):
    process = Process(rig, "uroce-run", [*rig.inside("a"), *wrapper,
                                         str(rig.build / "apps/uroce"), "run", *words], env)
    return process, process.wait(limit)


@case
def run_starts_an_engine(build):
    """Without an engine `uroce run` starts one; a second program shares it, and it ends when idle.
    """
    with Rig(build) as rig:
        rig.namespace("a")
        runtime = rig.folder / "runtime"
        runtime.mkdir(mode=0o700)
        env = {"XDG_RUNTIME_DIR": str(runtime)}
        os.environ.pop("UROCE_SOCKET", None)
        first, status = uroce_run(rig, ["--", "ibv_devinfo", "-d", "uroce0"], env)
        if status != 0 or "just started" not in first.output():
            raise Failure(f"ended with {status}: {first.tail()}")
        second, status = uroce_run(rig, ["--", "ibv_devinfo", "-d", "uroce0"], env)
        if status != 0 or "just started" in second.output():
            raise Failure(f"the second program did not share it: {second.tail()}")
        socket = runtime / "uroce/uroced.sock"
        wait_until("the end of the idle engine", 40, lambda: not socket.exists(), 0.2)
        return ""


@case
def run_keeps_its_engine(build):
    """The user's own engine stays for a program that opens the device late."""
    with Rig(build) as rig:
        rig.namespace("a")
        runtime = rig.folder / "runtime"
        (runtime / "uroce").mkdir(parents=True, mode=0o700)
        env = {"XDG_RUNTIME_DIR": str(runtime)}
        os.environ.pop("UROCE_SOCKET", None)
        socket = runtime / "uroce/uroced.sock"
        engine = Process(rig, "uroced", [*rig.inside("a"), str(build / "apps/uroced"), "--no-huge",
                                         "--", "--socket", str(socket), "--exit-when-idle", "1"])
        engine.expect("serving", 30)
        slow, status = uroce_run(rig, ["--", "sh", "-c", "sleep 3; exec ibv_devinfo -d uroce0"], env)
        if status != 0:
            raise Failure(f"ended with {status}: {slow.tail()}")
        if engine.wait(20) != 0:
            raise Failure(f"the engine ended with {engine.popen.returncode}: {engine.tail()}")
        return "and ends after it"


@case
def run_passes_status_and_refuses(build):
    """Status and signals are the program's; a program that cannot use the engine is refused in one
    line."""
    with rigs.same_host(build) as rig:
        socket = ["--quiet", "--socket", rig.socket("a"), "--"]
        setuid = rig.folder / "setuid"
        setuid.write_bytes(pathlib.Path("/bin/true").read_bytes())
        os.chown(setuid, 65534, 65534)
        setuid.chmod(0o4755)
        static = build / "tests/end_to_end/static"
        for words, wanted, text in [
            (["sh", "-c", "exit 7"], 7, ""),
            (["sh", "-c", "kill -TERM $$"], -signal.SIGTERM, ""),
            (["/nonexistent/program"], 127, "nonexistent"),
            (["/etc/passwd"], 126, "not an executable"),
            ([str(setuid)], 126, "setuid"),
            ([str(static)], 126, "static"),
        ]:
            process, status = uroce_run(rig, socket + words)
            lines = process.output().splitlines()
            if status != wanted or (text and (len(lines) != 1 or text not in lines[0])):
                raise Failure(f"{words}: ended with {status}, printed {lines}")
        process, status = uroce_run(rig, ["--socket", "/nonexistent.sock", "--", "true"])
        if status != 1 or len(process.output().splitlines()) != 1:
            raise Failure(f"a missing engine: {status}, {process.tail()}")
        return "6 programs"


@case
def perf_beside_an_engine(build):
    """`uroce perf` measures its own two engines, even if another one serves the host."""
    with rigs.same_host(build) as rig:
        text = rig.program("a", [str(build / "apps/uroce"), "perf", "--no-limits", "--seconds", "0.1",
                                 "--operation", "write", "--size", "8"], name="perf").succeed(60)
        if not re.search(r"^write +8 +[1-9]|^write +8 +0\.[0-9]*[1-9]", text, re.MULTILINE):
            raise Failure(f"no figures: {text[-200:]!r}")
        return text.splitlines()[-1].strip()


@case
def perf_with_other_verbs(build):
    """`uroce perf` reports that the libibverbs.so.1 in use is another one."""
    system = next(pathlib.Path("/usr/lib").glob("*/libibverbs.so.1")).parent
    with rigs.same_host(build) as rig:
        process = rig.program("a", ["env", f"LD_LIBRARY_PATH={system}",
                                    str(build / "apps/uroce-perf"), "--no-limits"], name="perf")
        if process.wait(60) != 1 or "libibverbs.so.1" not in process.output():
            raise Failure(f"it printed {process.output()!r}")
