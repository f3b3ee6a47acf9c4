# SPDX-License-Identifier: BSD-3-Clause
"""Programs and engines that die, hang or misbehave; wrong options; a wire that loses packets.

Each case makes its own rig, because it breaks something in it.
"""

import os
import pathlib
import re
import select
import signal
import subprocess
import time

import rig as rigs
from programs import NOBODY, figures, run_pair, run_pair_text, start_pair, table_rows
from rig import ADDRESS, Failure, Process, Rig, sh, wait_until, wakes

CASES = []


def case(function):
    CASES.append((function.__name__.replace("_", "-"), function))
    return function


def counts(rig, side="a"):
    s = rig.statistics(side)
    return s["clients"], s["qps"], s["mrs"]


def moving(rig, side="a", turns=1000, limit=60):
    """Waits until traffic flows: the lcores find work when they poll."""
    def busy():
        s = rig.statistics(side)
        return s["polls"] - s["idle_polls"]
    start = busy()
    wait_until("traffic", limit, lambda: busy() > start + turns, 0.05)


def misbehave(rig, mode, *words):
    """tests/end_to_end/misbehave.c, an ordinary verbs program that misbehaves."""
    program = rig.build / "tests/end_to_end/misbehave"
    process = rig.program("a", [str(program), mode, *words], name=f"misbehave-{mode}")
    return process


# hostile H-121: a program that is killed or stopped.
@case
def client_killed(build):
    """kill -9 of a program: its objects are removed at once, and another pair is not affected."""
    with rigs.same_host(build) as rig:
        server, client = start_pair(rig, ["ib_write_bw", "-D", "30", "-s", "4096"])
        other_server, other = start_pair(rig, ["ib_send_bw", "-n", "200000", "-s", "1024"])
        moving(rig)
        before = counts(rig)
        client.signal(signal.SIGKILL)
        killed = time.monotonic()
        # generous for a busy machine; `uroce stat` takes 10-50 ms of it
        wait_until("the end of the killed program's objects", 5,
                   lambda: counts(rig)[0] < before[0])
        took = time.monotonic() - killed
        text = other.succeed(120)
        other_server.succeed(15)
        server.end()
        wait_until("the end of all objects", 15, lambda: counts(rig) == (0, 0, 0))
        run_pair(rig, ["ibv_rc_pingpong", "-n", "100"])
        return f"gone within {took * 1000:.0f} ms; other pair: {figures('ib_send_bw', text)}"


def ends(processes, limit):
    """When each process ended, as it happens: waiting for the first would hide the others."""
    left = {os.pidfd_open(process.pid): process for process in processes}
    when = {}
    end = time.monotonic() + limit
    while left:
        ready, _, _ = select.select(list(left), [], [], max(0, end - time.monotonic()))
        if not ready:
            raise Failure(f"{', '.join(p.name for p in left.values())} did not end in {limit} s")
        for fd in ready:
            when[left.pop(fd)] = time.monotonic()
            os.close(fd)
    return when


def lose_engine(rig, words, watched):
    """Kills the engine under one pair; returns how many ms the watched ones of the pair lived on.
    """
    pair = start_pair(rig, words)
    moving(rig)
    rig.engines["a"].signal(signal.SIGKILL)
    killed = time.monotonic()
    when = ends([pair[i] for i in watched], 10)
    for process in when:
        if process.wait(5) == 0:
            raise Failure(f"{process.name} saw no error")
    for process in pair:
        process.end()
    rig.engine("a", options=["--ip", f"{ADDRESS['a'][0]}/24"])
    return max(ended - killed for ended in when.values()) * 1000


# hostile H-140: an engine that is killed.
@case
def engine_killed(build):
    """kill -9 of the engine: programs end by themselves, and a new engine takes over the socket."""
    with rigs.same_host(build) as rig:
        # The server of ib_write_bw does not use its engine: it waits for its client.
        polls = lose_engine(rig, ["ib_write_bw", "-D", "30", "-s", "4096"], [1])
        spins = lose_engine(rig, ["ibv_rc_pingpong", "-n", "100000000"], [0, 1])
        sleeps = lose_engine(rig, ["ibv_rc_pingpong", "-n", "100000000", "-e"], [0, 1])
        said = run_pair(rig, ["ibv_rc_pingpong", "-n", "100"])
        return (f"ended within {polls:.0f} ms, spinning pair {spins:.0f} ms, "
                f"sleeping pair {sleeps:.0f} ms; then {said}")


# hostile H-140: an engine that is killed.
@case
def engine_killed_on_wire(build):
    """kill -9 of one of two engines: the other engine's program runs out of retries."""
    with rigs.veth(build, 1500) as rig:
        server, client = start_pair(rig, ["ib_write_bw", "-D", "60", "-s", "4096", "-u", "14"])
        moving(rig)
        rig.engines["a"].signal(signal.SIGKILL)
        if client.wait(20) == 0:
            raise Failure("the client saw no error")
        server.end()
        text = client.output()
        if not re.search("status|error|Failed", text, re.I):
            raise Failure(f"the client printed no error: {client.tail()}")
        del rig.engines["a"]
        v4, v6 = ADDRESS["a"]
        rig.engine("a", [rigs.af_packet("wire", 1500)],
                   ["--port", "net_af_packet0", "--ip", f"{v4}/24,{v6}/64"])
        return "then " + run_pair(rig, ["ibv_rc_pingpong", "-n", "100"])


def eal_folder(pid):
    return pathlib.Path(f"/run/dpdk/uroce-{pid}")


def unused_pid():
    """A pid that no process has; the highest ones are assigned last."""
    highest = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text()) - 1
    return next(pid for pid in range(highest, 300, -1)
                if not os.path.exists(f"/proc/{pid}") and not eal_folder(pid).is_symlink() and
                not eal_folder(pid).exists())


def engine_elsewhere(rig, pid):
    """An engine in a pid namespace of its own, whose pid looks unused here."""
    engine = [str(rig.build / "apps/uroced"), "--no-huge", "--", "--socket", rig.socket("c")]
    start = f'echo {pid - 1} > /proc/sys/kernel/ns_last_pid; "$@" & wait'
    process = Process(rig, "uroced-c", ["unshare", "--pid", "--fork", "--kill-child",
                                        "--mount-proc", "sh", "-c", start, "sh", *engine])
    process.expect("serving", 30)


# hostile H-140: an engine that is killed.
@case
def engine_killed_leaves_no_folder(build):
    """The next engine to start removes the EAL folder of a killed one. Folders of running engines
    stay, also of one in another pid namespace, and links are not followed."""
    elsewhere = unused_pid()
    link = eal_folder(elsewhere - 1)
    with rigs.same_host(build) as rig:
        dead = eal_folder(rig.engines["a"].pid)
        engine_elsewhere(rig, elsewhere)
        other = rig.folder / "other"
        other.mkdir()
        (other / "file").touch()
        link.symlink_to(other)
        try:
            for folder in (dead, eal_folder(elsewhere)):
                if not list(folder.iterdir()):
                    raise Failure(f"there is nothing in {folder}")
            rig.engines["a"].signal(signal.SIGKILL)
            rig.engines["a"].wait(10)
            new = eal_folder(rig.engine("a").pid)
            if dead.exists():
                raise Failure(f"{dead} is still there: {os.listdir(dead)}")
            for path in (new, eal_folder(elsewhere), other):
                if not list(path.iterdir()):
                    raise Failure(f"{path} was emptied")
            if not link.is_symlink():
                raise Failure(f"{link} is gone")
        finally:
            link.unlink(missing_ok=True)
    for path in (new, eal_folder(elsewhere)):
        if path.exists():
            raise Failure(f"an engine that ended as usual left {path}: {os.listdir(path)}")
    return ""


@case
def interface_deleted(build):
    """The interface is deleted during a transfer: its programs get an error, and the engine lives,
    answers and ends normally (hostile H-129)."""
    with rigs.two_namespaces(build) as rig:
        rig.veth("wire", 1500)
        for side in "ab":
            rig.ip(side, "address", "add", f"{ADDRESS[side][0]}/24", "dev", "wire")
        for side in "ab":
            rig.begin_engine(side, options=["--netdev", "wire"])
        rig.await_engines()
        rig.mtu = 1024
        server, client = start_pair(rig, ["ib_write_bw", "-D", "60", "-s", "4096", "-u", "14"])
        moving(rig)
        rig.ip("a", "link", "del", "wire")
        if client.wait(30) == 0:
            raise Failure("the client saw no error")
        server.end()
        rig.check_healthy()
        wait_until("the end of all objects", 15, lambda: counts(rig) == (0, 0, 0))
        for side in "ab":
            rig.engines[side].signal(signal.SIGTERM)
            if rig.engines[side].wait(10) != 0:
                raise Failure(f"engine {side} ended with {rig.engines[side].popen.returncode}: "
                              f"{rig.engines[side].tail()}")
            del rig.engines[side]
        return "only an error"


def stopped(build, messages, wrappers=((), ())):
    """A server is stopped in mid-transfer; another pair must not be affected."""
    with rigs.same_host(build) as rig:
        server, client = start_pair(rig, ["ib_send_bw", "-n", str(messages), "-s", "1024"],
                                    wrappers=wrappers)
        moving(rig)
        server.signal(signal.SIGSTOP)
        said = run_pair(rig, ["ib_write_bw", "-n", "2000", "-s", "65536"])
        server.signal(signal.SIGCONT)
        client.succeed(120)
        server.succeed(15)
        return f"meanwhile {said}"


# hostile H-121: a program that is killed or stopped.
@case
def client_stopped(build):
    """A stopped program delays no other program, and continues where it was."""
    return stopped(build, 300000)


# hostile H-121: a program that is killed or stopped.
@case
def client_stopped_other_user(build):
    """The same with a stopped program of another user, whose memory a mover accesses."""
    return stopped(build, 100000, (NOBODY, NOBODY))


# hostile H-121: a program that is killed or stopped.
@case
def client_execs(build):
    """A program that executes another one: its objects are removed, and the new program's memory is
    not written."""
    with rigs.same_host(build) as rig:
        process = misbehave(rig, "exec")
        process.expect("executed", 20)
        wait_until("the end of the old program's objects", 15,
                   lambda: counts(rig) == (0, 0, 0))
        if not process.alive():
            raise Failure(f"the new program ended: {process.tail()}")
        return run_pair(rig, ["ibv_rc_pingpong", "-n", "100"])


@case
def client_memory_blocks(build):
    """A program whose memory blocks every access (with its own userfaultfd)."""
    with rigs.same_host(build) as rig:
        process = misbehave(rig, "block")
        process.expect("posted", 20)
        said = run_pair(rig, ["ib_write_bw", "-n", "2000", "-s", "65536"])
        process.end()
        wait_until("the end of its objects", 15, lambda: counts(rig) == (0, 0, 0))
        return f"meanwhile {said}"


HOG = """
from pyverbs.device import Context
from pyverbs.cq import CompChannel
held = [Context(name="uroce0")]
try:
    while True:
        held.append(CompChannel(held[0]))
except Exception as error:
    print("full:", error, flush=True)
input()
"""


@case
def client_takes_all_descriptors(build):
    """A program that uses up its engine's descriptors does not take the link down for others.
    Changes are announced once descriptors are free again."""
    with rigs.two_namespaces(build, control=False) as rig:
        rig.veth("wire", 1500)
        rig.ip("a", "address", "add", "10.7.0.1/24", "dev", "wire")
        words = [*rig.inside("a"), "prlimit", "--nofile=200:200", str(build / "apps/uroced"),
                 "--no-huge", "--", "--socket", rig.socket("a"), "--netdev", "wire"]
        rig.engines["a"] = Process(rig, "uroced-a", words)
        rig.await_engine("a")
        watcher = rig.program("a", ["stdbuf", "-oL", "ibv_asyncwatch"])
        watcher.expect("async event FD", 15)
        hog = rig.program("a", ["sh", "-c", 'sleep 60 | exec /usr/bin/python3 -c "$0"', HOG],
                          name="hog")
        hog.expect("full:", 20)
        rig.ip("a", "address", "add", "10.7.0.50/24", "dev", "wire")
        pid = rig.engines["a"].pid
        before = wakes(pid, "uroce-control")
        # it wakes every 40 ms and looks at the link every 100 ms
        wait_until("some looks at the link", 20,
                   lambda: wakes(pid, "uroce-control") >= before + 20)
        hog.end()
        wait_until("the new address", 15, lambda: "10.7.0.50" in rig.statistics("a")["addresses"])
        rig.ip("a", "link", "set", "wire", "down")
        watcher.expect("PORT_ERR", 15)
        gids = pathlib.Path(rig.socket("a") + ".files/class/infiniband/uroce0/ports/1")
        wait_until("DOWN in the file of the state", 15,
                   lambda: "DOWN" in (gids / "state").read_text())
        events = re.findall(r"IBV_EVENT_(\w+)", watcher.output())
        if events[:2] != ["GID_CHANGE", "PORT_ERR"]:
            raise Failure(f"the events were {events}")
        return "no event before they are back"


@case
def client_aborts(build):
    """A program that aborts with a hundred queue pairs open."""
    with rigs.same_host(build) as rig:
        process = misbehave(rig, "abort")
        process.expect("ready", 20)
        if counts(rig)[1] < 100:
            raise Failure(f"{counts(rig)[1]} queue pairs instead of 100")
        process.signal(signal.SIGKILL)
        wait_until("the end of its objects", 15, lambda: counts(rig) == (0, 0, 0))
        return run_pair(rig, ["ibv_rc_pingpong", "-n", "100"])


@case
def engine_ends_on_sigterm(build):
    """SIGTERM: status 0, the socket is removed, and programs with open objects get an error."""
    with rigs.same_host(build) as rig:
        server, client = start_pair(rig, ["ib_write_bw", "-D", "30", "-s", "4096"])
        moving(rig)
        engine = rig.engines["a"]
        engine.signal(signal.SIGTERM)
        status = engine.wait(10)
        if status != 0:
            raise Failure(f"uroced ended with {status}: {engine.tail()}")
        if os.path.exists(rig.socket("a")):
            raise Failure("the socket is still there")
        if client.wait(5) == 0:
            raise Failure("the client saw no error")
        server.end()
        return ""


# The loss of a last packet is noticed only after the timeout: perftest's default is 67 ms.
LOSSY = [("write", ["ib_write_bw", "-s", "65536", "-n", "1500", "-u", "14"]),
         ("read", ["ib_read_bw", "-s", "65536", "-n", "500", "-u", "14"]),
         ("send", ["ib_send_bw", "-s", "65536", "-n", "500", "-u", "14"]),
         ("atomic", ["ib_atomic_bw", "-n", "2000", "-u", "14"])]


def pingpong_that_loses(rig):
    """A pingpong whose last acknowledgement the wire may lose.

    Its programs end as soon as they have their own completions, so the last one may wait for a lost
    acknowledgement that no peer can repeat (perftest shakes hands over TCP before it ends). If one
    program has succeeded and only then the other ran out of retries, all data has arrived, and the
    pingpong is repeated. This happens in 1-2 of 100 runs, and never in 5 in a row.
    """
    for _ in range(5):
        server, client = start_pair(rig, ["ibv_rc_pingpong", "-c", "-n", "500"])
        try:
            status = {program: program.wait(120) for program in (client, server)}
            rig.check_healthy()
            if not any(status.values()):
                return "pingpong " + figures("ibv_rc_pingpong", client.output())
            for program, other in ((client, server), (server, client)):
                if status[program] and (status[other] or "retry counter exceeded" not in
                                        program.output()):
                    raise Failure(f"{program.name}: {status[program]}, {program.tail()}; "
                                  f"{other.name}: {status[other]}, {other.tail()}")
        finally:
            client.end()
            server.end()
    raise Failure("five pingpongs in turn lost their last acknowledgement")


def lossy_rig(build, what):
    """Two engines on a cable; what engine b sends and receives passes net_impair."""
    rig = rigs.two_namespaces(build)
    rig.veth("wire", 4200)
    for side in "ab":
        v4, v6 = ADDRESS[side]
        eal, port = [rigs.af_packet("wire", 4200)], "net_af_packet0"
        if side == "b":
            eal.append(f"--vdev=net_impair0,port=net_af_packet0,{what}")
            port = "net_impair0"
        rig.begin_engine(side, eal, ["--port", port, "--ip", f"{v4}/24,{v6}/64", "--mtu", "4200"])
    rig.await_engines()
    rig.mtu = 4096
    return rig


@case
def wire_loses(build):
    """One packet in a hundred is dropped in both directions: slower, but nothing is lost."""
    with lossy_rig(build, "drop=0.01,seed=7") as rig:
        said = [f"{name} {run_pair(rig, words, limit=120)}" for name, words in LOSSY]
        said.append(pingpong_that_loses(rig))
        again = rig.statistics("b")["retransmitted"] + rig.statistics("a")["retransmitted"]
        if again == 0:
            raise Failure("nothing was retransmitted: did the wire lose anything?")
        return f"{again} packets retransmitted; " + "; ".join(said)


UNRELIABLE = [("uc-write", ["ib_write_bw", "-c", "UC", "-s", "65536", "-n", "1000"]),
              ("uc-write-both", ["ib_write_bw", "-c", "UC", "-b", "-q", "8", "-n", "200"])]


@case
def wire_loses_what_nobody_repeats(build):
    """UC loses only the messages whose packets are lost: all sends complete, and the programs go
    on."""
    with lossy_rig(build, "drop=0.02,duplicate=0.01,reorder=0.01,seed=5") as rig:
        said = [f"{name} {run_pair(rig, words, limit=60)}" for name, words in UNRELIABLE * 2]
        reasons = rig.statistics("a")["by_reason"]
        if reasons["psn_ahead"] + reasons["opcode_sequence"] == 0:
            raise Failure("no message was cut: did the wire lose anything?")
        return f"then {pingpong_that_loses(rig)}; " + "; ".join(said)


NARROW_MBIT = 800


def told_of_marks(rig):
    """The wire marks what waits long, the receiver tells the sender, and the sender hears it."""
    both = [rig.statistics(side) for side in "ab"]
    marked, told = (sum(s[key] for s in both) for key in ("ecn_marked", "cnps_sent"))
    heard = sum(s["by_reason"].get("cnp_received", 0) for s in both)
    if 0 in (marked, told, heard) or told > marked or heard > told:
        raise Failure(f"{marked} packets came marked, {told} notifications were sent, and {heard} "
                      f"came")
    return f"{marked} marks, {told} notifications"


@case
def wire_is_narrow(build):
    """A bottleneck with a short buffer: programs get what it carries, and nothing is lost for good."""
    what = f"rate={NARROW_MBIT}M,queue=64k,ecn=32k"
    with lossy_rig(build, what) as rig:
        said = []
        for name, words in (("write", ["ib_write_bw", "-s", "65536", "-n", "400", "-u", "14"]),
                            ("read", ["ib_read_bw", "-s", "65536", "-n", "400", "-u", "14"])):
            text = run_pair_text(rig, words)
            said.append(f"{name} {figures(words[0], text)}")
            mbit = float(table_rows(text)[-1][3]) * 8 * 1.048576
            if mbit > NARROW_MBIT:
                raise Failure(f"{name}: {mbit:.0f} Mbit/s through a wire of {NARROW_MBIT}")
            said.append(told_of_marks(rig))
        return "; ".join(said)


@case
def wire_is_bad(build):
    """The wire also reorders, duplicates, corrupts and delays packets."""
    what = "drop=0.005,duplicate=0.01,reorder=0.01,corrupt=0.005,seed=11"
    with lossy_rig(build, what) as rig:
        said = [f"{name} {run_pair(rig, words, limit=120)}" for name, words in LOSSY]
        said.append(pingpong_that_loses(rig))
        return "; ".join(said)


@case
def neighbour_moves(build):
    """A host changes its MAC address: an address handle that a program holds follows it."""
    with rigs.veth(build, 1500) as rig:
        far, script = "10.7.0.99", pathlib.Path(__file__).parent / "datagrams.py"
        new = "02:00:00:00:99:99"
        rig.ip("b", "address", "replace", f"{far}/24", "dev", "wire")
        rigs.sh(*rig.inside("b"), "sysctl", "-qw", "net.ipv4.conf.wire.arp_notify=1")
        sender = rig.program("a", ["/usr/bin/python3", str(script), far], name="datagrams")
        sender.expect("resolved", 20)
        path = rig.folder / "moved.pcapng"
        capture = Process(rig, "dumpcap", [
            *rig.inside("b"), "dumpcap", "-q", "-i", "wire", "-B", "64", "-w", str(path), "-f",
            f"udp port 4791 and ether dst {new}"])
        capture.expect("File: ", 20)
        moved = time.monotonic()
        for words in (("down",), ("address", new), ("up",)):
            rig.ip("b", "link", "set", "wire", *words)
        wait_until(f"datagrams to {new}", 20,
                   lambda: path.exists() and rigs.sh("tshark", "-r", str(path), check=False), 0.2)
        took = time.monotonic() - moved
        if not sender.alive():
            raise Failure(f"the sender ended: {sender.tail()}")
        sender.end()
        capture.end()
        return f"followed within {took:.1f} s"


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


@case
def ten_gib(build):
    """Two engines carry 10 GiB of ib_write_bw."""
    with rigs.veth(build, 4200) as rig:
        return run_pair(rig, ["ib_write_bw", "-s", "1048576", "-n", "10240"], limit=300)


@case
def ten_gib_lossy(build):
    """The same with one packet in a hundred dropped."""
    with lossy_rig(build, "drop=0.01,seed=3") as rig:
        said = run_pair(rig, ["ib_write_bw", "-s", "1048576", "-n", "10240", "-u", "14"], limit=900)
        return f"{said}; {rig.statistics('b')['retransmitted']} packets retransmitted"


LONG = ("ten-gib", "ten-gib-lossy")
