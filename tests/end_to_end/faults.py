# SPDX-License-Identifier: BSD-3-Clause
"""Programs and engines that die, hang or misbehave.

Each case makes its own rig, because it breaks something in it.
"""

import os
import pathlib
import re
import select
import signal
import time

import rig as rigs
from programs import NOBODY, figures, run_pair, run_pair_text, start_pair, table_rows
from rig import ADDRESS, Failure, Process, case_of, wait_until, wakes

CASES = []
case = case_of(CASES)

# perftest's --qp-timeout: gives up after 2 s without an answer. With 14, then half a second, a program gave up on a
# busy machine before its traffic was to be cut.
SOON = "16"


def counts(rig, side="a"):
    s = rig.statistics(side)
    return s["clients"], s["qps"], s["mrs"]


def moving(rig, *programs, turns=1000, limit=60):
    """Waits until traffic of these programs flows: the lcores of side a find work when they poll."""
    def busy():
        for program in programs:
            if not program.alive():
                raise Failure(f"{program.name} ended with {program.popen.returncode} before traffic flowed: "
                              f"{program.tail()}")
        s = rig.statistics("a")
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
        moving(rig, server, client)
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
    """When each process ended, recorded as it happens: waiting for the first would hide the others."""
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
    """Kills the engine under one pair; returns for how many ms the watched processes of the pair went on."""
    pair = start_pair(rig, words)
    moving(rig, *pair)
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
        server, client = start_pair(rig, ["ib_write_bw", "-D", "60", "-s", "4096", "-u", SOON])
        moving(rig, server, client)
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


def idle_stream(rig, seconds):
    """Both ends of tests/end_to_end/idle_stream.c; the client's keep-alives begin after so many seconds."""
    program, address, port = str(rig.build / "tests/end_to_end/idle-stream"), ADDRESS["a"][0], str(rig.port())
    server = rig.program("a", [program, "server", address, port, "0"], name=f"idle-server-{seconds}")
    server.expect("listening", 30)
    client = rig.program("b", [program, "client", address, port, str(seconds)], name=f"idle-client-{seconds}")
    client.expect("connected", 30)
    server.expect("connected", 30)
    return server, client


# hostile H-140: an engine that is killed.
@case
def idle_stream_loses_its_peer(build):
    """An rsocket with SO_KEEPALIVE notices that its peer's engine was killed; one without it waits on."""
    with rigs.veth(build, 4200) as rig:
        watching, waiting = idle_stream(rig, 1), idle_stream(rig, 0)
        before = rig.statistics("b")["tx_packets"]
        wait_until("the second keep-alive", 30, lambda: rig.statistics("b")["tx_packets"] >= before + 2, 0.1)
        if not all(end.alive() for end in (*watching, *waiting)):
            raise Failure(f"an idle stream ended: {watching[1].tail()} {waiting[1].tail()}")
        rig.engines["a"].signal(signal.SIGKILL)
        killed = time.monotonic()
        text = watching[1].succeed(60)
        if "Connection timed out" not in text:
            raise Failure(f"the stream ended otherwise: {watching[1].tail()}")
        took = time.monotonic() - killed
        if not waiting[1].alive():
            raise Failure(f"without keep-alives it ended, too: {waiting[1].tail()}")
        for end in (*watching, *waiting):
            end.end()
        return f"timed out after {took:.1f} s"


def rate_of_another(rig):
    """Of a pair with one queue pair, in MiB/s."""
    text = run_pair_text(rig, ["ib_write_bw", "-n", "1000", "-s", "4096", "-u", "20"])
    return float(table_rows(text)[0][3])


@case
def peers_program_killed(build):
    """kill -9 of a program with 64 queue pairs: those of its peer wait for it, but hold up no others.

    The other pair shares its path with them before, and is faster afterwards, or on a busy machine not much
    slower. If it had to wait for them, that would be for a timeout of 4.3 s.
    """
    with rigs.veth(build, 4200) as rig:
        server, client = start_pair(rig, ["ib_write_bw", "-q", "64", "-D", "120", "-s", "65536",
                                          "-t", "64", "-u", "20"])
        moving(rig, server, client)
        before = rate_of_another(rig)
        server.signal(signal.SIGKILL)
        after = rate_of_another(rig)
        if not client.alive():
            raise Failure("the killed program's peer did not wait for it")
        client.end()
        said = f"another pair: {before:.0f} MiB/s, then {after:.0f} MiB/s"
        if after < before / 4:
            raise Failure(said)
        return said


def eal_folder(pid):
    return pathlib.Path(f"/run/dpdk/uroce-{pid}")


def unused_pid():
    """A pid that no process has; the highest pids are assigned last."""
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
        server, client = start_pair(rig, ["ib_write_bw", "-D", "60", "-s", "4096", "-u", SOON])
        moving(rig, server, client)
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
        moving(rig, server, client)
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
        moving(rig, server, client)
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
