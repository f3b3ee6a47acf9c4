# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces, engines and programs of one test, and their removal.

A Rig owns everything that a test makes: namespaces, whose names contain this process's pid;
processes, each in a session of its own and killed by its id; files, in one folder. Every wait has
a limit and says what did not come.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from listening import listening

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "UROCE_RIG"  # in the environment of every program of a rig: so the guard finds it, whenever we are killed
GUARD = pathlib.Path(__file__).resolve().parent / "guard.py"

# The addresses of the two engines on the wire.
ADDRESS = {"a": ("10.7.0.1", "fd07::1"), "b": ("10.7.0.2", "fd07::2")}
CONTROL = {"a": "10.8.0.1", "b": "10.8.0.2"}  # for the programs' own TCP connection

# What a program of perftest loads, so that it sleeps where it measures the processor's clock (calm_clock.c).
CALM_CLOCK = "tests/end_to_end/libcalm-clock.so"
PERFTEST = re.compile(r"(ib|raw_ethernet)_\w*(bw|lat)$")


# How nice a process is that comes before what runs beside the test: one that must not wait for 1.7 s,
# because then a program gives up, or one whose share of a processor is measured.
FAVOUR = "-10"


class Failure(Exception):
    """A failure, described in one line."""


class Skipped(Exception):
    """What this machine lacks for a case, in one line."""


def case_of(cases):
    """A decorator: a function is a case of that list, by its name with hyphens."""
    def case(function):
        cases.append((function.__name__.replace("_", "-"), function))
        return function
    return case


def wait_until(what, limit, condition, pause=0.01, seen=None):
    """Waits until `condition` is true, at most `limit` seconds. `seen` returns what is known of what did not come."""
    end = time.monotonic() + limit
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise Failure(f"{what} did not come within {limit} s{f' ({seen()})' if seen else ''}")
        time.sleep(pause)


def wakes(pid, thread):
    """How often the thread of this name has been given a processor."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == thread:
            text = (task / "status").read_text()
            return sum(int(n) for n in re.findall(r"ctxt_switches:\s+(\d+)", text))
    raise Failure(f"there is no thread {thread}")


def sh(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    if check and done.returncode != 0:
        raise Failure(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Process:
    """A program under test, with its output in a file."""

    def __init__(self, rig, name, words, env=None, favoured=False):
        self.name = name
        favoured = favoured or rig.favoured
        words = [*(["nice", "-n", FAVOUR] if favoured else []), *words]
        self.log = rig.folder / f"{len(rig.processes):03}-{name}.log"
        with open(self.log, "wb") as out:
            self.popen = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out,
                                          stderr=subprocess.STDOUT, start_new_session=True,
                                          env={**os.environ, **(env or {}), MARK: str(rig.folder)})
        if favoured:  # where Linux divides a machine by sessions first, the process's session needs it, too
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{self.pid}/autogroup").write_text(FAVOUR)
        rig.processes.append(self)

    @property
    def pid(self):
        return self.popen.pid

    def output(self):
        return self.log.read_text(errors="replace")

    def tail(self):
        """The relevant part of its output: complaints if there are any, otherwise the last lines.
        """
        lines = [line.strip() for line in self.output().splitlines() if line.strip(" -")]
        complaints = [line for line in lines
                      if re.search(r"error|fail|unable|couldn|cannot|invalid|status|not ", line, re.I)]
        return " / ".join((complaints or lines)[-3:])[-300:] or "(no output)"

    def alive(self):
        return self.popen.poll() is None

    def signal(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def wait(self, limit):
        """Returns the exit status; fails if the program takes longer than `limit` seconds."""
        try:
            return self.popen.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end within {limit} s: {self.tail()}") from None

    def wait_a_little(self, limit):
        """Waits for the end, but not longer."""
        try:
            self.popen.wait(limit)
        except subprocess.TimeoutExpired:
            pass

    def succeed(self, limit):
        status = self.wait(limit)
        if status != 0:
            raise Failure(f"{self.name} ended with {status}: {self.tail()}")
        return self.output()

    def expect(self, text, limit):
        """Waits until a line with `text` (an expression) was printed."""
        def printed():
            if re.search(text, self.output()):
                return True
            if not self.alive() and not re.search(text, self.output()):
                raise Failure(f"{self.name} ended with {self.popen.returncode} before it printed "
                              f"'{text}': {self.tail()}")
            return False
        wait_until(f"'{text}' of {self.name}", limit, printed)

    def await_listening(self, port, limit=20):
        """Waits until a TCP socket in the program's namespace listens on this port."""
        def listens():
            if not self.alive():
                raise Failure(f"{self.name} ended with {self.popen.returncode} before it "
                              f"listened: {self.tail()}")
            try:
                return listening(self.pid, port)
            except (FileNotFoundError, ProcessLookupError):
                return False  # it has ended
        wait_until(f"{self.name} listening on TCP port {port}", limit, listens)

    def end(self):
        if not self.alive():
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.popen.wait(5)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.popen.wait(5)


class Guard:
    """A process that removes everything if this process is killed (guard.py)."""

    def __init__(self):
        self.popen = subprocess.Popen([sys.executable, "-ISB", str(GUARD)], stdin=subprocess.PIPE,
                                      text=True, start_new_session=True)

    def note(self, what, name=""):
        try:
            print(what, name, file=self.popen.stdin, flush=True)
        except BrokenPipeError:
            pass  # the guard was killed

    def end(self):
        self.note("done")
        self.popen.stdin.close()
        self.popen.wait(10)


class Rig:
    """Engines and the wire between them. `sides` maps a name to (namespace, socket). `favoured`: all processes."""

    serial = 0

    def __init__(self, build, favoured=False):
        Rig.serial += 1
        self.favoured = favoured
        self.build = build
        self.guard = Guard()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"uroce-e2e-{os.getpid()}-"))
        self.guard.note("mark", f"{MARK}={self.folder}")
        self.guard.note("folder", self.folder)
        self.folder.chmod(0o755)
        self.prefix = f"uroce{os.getpid()}x{Rig.serial}"
        self.namespaces = []
        self.processes = []
        self.engines = {}
        self.place = {}  # a side that uses the namespace of another one
        self.next_port = 18600
        self.tools = copy_tools(build, self.folder)
        self.calm = True  # whether CALM_CLOCK is loaded

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close(keep=kind is not None and os.environ.get("UROCE_KEEP"))

    def close(self, keep=False):
        for process in reversed(self.processes):
            process.end()
        for name in self.namespaces:
            sh("ip", "netns", "del", name, check=False)
        if keep:
            print(f"    kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.guard.end()

    # -- namespaces -------------------------------------------------------------------------

    def namespace(self, side):
        name = f"{self.prefix}{side}"
        self.guard.note("namespace", name)
        sh("ip", "netns", "add", name)
        self.namespaces.append(name)
        self.ip(side, "link", "set", "lo", "up")
        return name

    def ip(self, side, *words):
        return sh("ip", "-n", f"{self.prefix}{side}", *words)

    def veth(self, name, mtu):
        """A cable between the namespaces a and b; its ends are both called `name`."""
        ends = {side: f"{name}{side}{os.getpid() % 100000}" for side in "ab"}
        sh("ip", "link", "add", ends["a"], "type", "veth", "peer", "name", ends["b"])
        for side, end in ends.items():
            sh("ip", "link", "set", end, "netns", f"{self.prefix}{side}")
            self.ip(side, "link", "set", end, "name", name)
            sh("ip", "netns", "exec", f"{self.prefix}{side}", "sysctl", "-qw",
               f"net.ipv6.conf.{name}.accept_dad=0", check=False)
            self.ip(side, "link", "set", name, "mtu", str(mtu))
        for side in "ab":
            self.ip(side, "link", "set", name, "up")

    def inside(self, side):
        return ["nsenter", f"--net=/run/netns/{self.prefix}{self.place.get(side, side)}"]

    # -- engines ----------------------------------------------------------------------------

    def socket(self, side):
        return str(self.folder / f"{side}.sock")

    def engine(self, side, eal=(), options=(), limit=30, huge=False):
        """Starts a uroced in a namespace and waits until it serves."""
        process = self.begin_engine(side, eal, options, huge)
        self.await_engine(side, limit)
        return process

    def begin_engine(self, side, eal=(), options=(), huge=False):
        """Two engines start faster together."""
        # less than the default of 512 MiB, because the EAL writes to what describes each page of it
        memory = [] if huge else ["--no-huge", "-m", "128"]
        words = [*self.inside(side), str(self.build / "apps/uroced"), *memory, *eal, "--",
                 "--socket", self.socket(side), "--socket-mode", "0666", *options]
        process = Process(self, f"uroced-{side}", words)
        self.engines[side] = process
        return process

    def await_engines(self):
        for side in self.engines:
            self.await_engine(side)

    def await_engine(self, side, limit=30):
        process = self.engines[side]

        def serves():
            if not process.alive():
                raise Failure(f"{process.name} ended with {process.popen.returncode}: "
                              f"{process.tail()}")
            return subprocess.run([self.tools / "apps/uroce", "stat", "--json", "--socket",
                                   self.socket(side)], capture_output=True).returncode == 0
        wait_until(f"the engine of side {side}", limit, serves, 0.05)

    def statistics(self, side):
        import json
        return json.loads(sh(str(self.tools / "apps/uroce"), "stat", "--json", "--socket",
                             self.socket(side)))

    def connection_ids(self, side):
        """The ids of rdma_cm: listeners and connections."""
        import json
        return json.loads(sh(str(self.tools / "apps/uroce"), "stat", "--cm", "--json", "--socket",
                             self.socket(side)))

    def check_healthy(self):
        for side, process in self.engines.items():
            if not process.alive():
                raise Failure(f"the engine of side {side} ended with "
                              f"{process.popen.returncode}: {process.tail()}")

    # -- programs ---------------------------------------------------------------------------

    def port(self):
        self.next_port += 1
        return self.next_port

    def program(self, side, words, wrapper=(), name=None, env=None, options=()):
        """Starts an unmodified program on this side's engine."""
        run = [str(self.tools / "apps/uroce"), "run", "--quiet", "--socket", self.socket(side),
               *options, "--"]
        if self.calm:
            env = {**calm_clock(self.tools, words), **(env or {})}
        return Process(self, name or f"{words[0]}-{side}",
                       [*self.inside(side), *wrapper, *run, *words], env)


def calm_clock(build, words):
    """What a program needs in its environment, so that it has CALM_CLOCK if it is one of perftest's."""
    is_perftest = any(PERFTEST.match(str(word)) for word in words)
    return {"LD_PRELOAD": str(build / CALM_CLOCK)} if is_perftest else {}


def copy_tools(build, folder):
    """Copies programs for other users, who may not be able to read the checkout."""
    tools = folder / "build"
    for source in [build / "apps/uroce", build / CALM_CLOCK, *build.glob("lib/**/*.so*")]:
        if source.is_file():
            target = tools / source.relative_to(build)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                target.symlink_to(os.readlink(source))
            else:
                shutil.copy2(source, target)
    for path in [tools, *tools.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    return tools


def remove_leftovers():
    """Removes namespaces of a run that was killed with SIGKILL."""
    for line in sh("ip", "netns", "list", check=False).splitlines():
        match = re.match(r"(uroce(\d+)x\d+\w*)", line)
        if match and not os.path.exists(f"/proc/{match[2]}"):
            sh("ip", "netns", "del", match[1], check=False)
    for path in pathlib.Path(tempfile.gettempdir()).glob("uroce-e2e-*"):
        pid = path.name.split("-")[2]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(path, ignore_errors=True)


# -- the rigs --------------------------------------------------------------------------------

def same_host(build, eal=(), huge=False, favoured=False):
    """(a) One engine without a port, used by all programs."""
    rig = Rig(build, favoured)
    rig.namespace("a")
    rig.engine("a", eal, ["--ip", f"{ADDRESS['a'][0]}/24,{ADDRESS['a'][1]}/64"], huge=huge)
    rig.sides = ("a", "a")
    rig.control = "127.0.0.1"
    rig.mtu = 4096
    return rig


def two_namespaces(build, control=True, favoured=False):
    rig = Rig(build, favoured)
    for side in "ab":
        rig.namespace(side)
    if control:
        rig.veth("ctl", 1500)
        for side in "ab":
            rig.ip(side, "address", "add", f"{CONTROL[side]}/24", "dev", "ctl")
    rig.sides = ("a", "b")
    rig.control = CONTROL["a"]
    return rig


def af_packet(iface, mtu):
    frame = 2048 if mtu <= 1500 else 4352  # a multiple of 16 that holds the MTU and 80 octets more
    return (f"--vdev=net_af_packet0,iface={iface},framesz={frame},blocksz={16 * frame},"
            f"framecnt=1024,qdisc_bypass=0")


def huge_pages(build):
    """The same in hugepages, which are reserved for the test if the machine has none."""
    count = pathlib.Path("/proc/sys/vm/nr_hugepages")
    before = count.read_text()
    try:
        if int(before) < 256:
            count.write_text("256")
        if int(count.read_text()) < 256:
            count.write_text(before)
            raise Skipped("this machine cannot reserve 256 hugepages")
    except PermissionError:
        raise Skipped("hugepages cannot be reserved here") from None
    try:
        return same_host(build, huge=True)
    finally:
        count.write_text(before)  # pages in use stay until the engine ends


def tap(build, options=()):
    """(b) Two engines on taps, each bridged to an end of a veth pair."""
    rig = two_namespaces(build)
    rig.veth("wire", 1500)
    for side in "ab":
        v4, v6 = ADDRESS[side]
        rig.engine(side, ["--vdev=net_tap0,iface=utap0"],
                   ["--port", "net_tap0", "--ip", f"{v4}/24,{v6}/64", *options])
        rig.ip(side, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        for iface in ("utap0", "wire"):
            rig.ip(side, "link", "set", iface, "master", "br0")
        rig.ip(side, "link", "set", "utap0", "up")
        rig.ip(side, "link", "set", "br0", "up")
    rig.mtu = 1024
    return rig


def veth(build, mtu, options=(), b_options=None, eal=(), favoured=False):
    """(b) Two engines with addresses of their own, each on an end of a veth pair."""
    rig = two_namespaces(build, favoured=favoured)
    rig.veth("wire", mtu)
    for side in "ab":
        v4, v6 = ADDRESS[side]
        extra = options if side == "a" or b_options is None else b_options
        rig.begin_engine(side, [af_packet("wire", mtu), *eal],
                         ["--port", "net_af_packet0", "--ip", f"{v4}/24,{v6}/64", "--mtu", str(mtu),
                          *extra])
    rig.await_engines()
    rig.mtu = 1024 if mtu <= 1500 else 4096
    return rig


def netdev(build, mtu, driver="af_packet"):
    """(b) Two engines that share the addresses of Linux interfaces with their kernels."""
    rig = two_namespaces(build, control=False)
    rig.veth("wire", mtu)
    for side in "ab":
        for address, length in zip(ADDRESS[side], (24, 64)):
            rig.ip(side, "address", "add", f"{address}/{length}", "dev", "wire")
    for side in "ab":
        rig.begin_engine(side, options=["--netdev", "wire", "--netdev-driver", driver])
    rig.await_engines()
    rig.control = ADDRESS["a"][0]
    rig.mtu = 1024 if mtu <= 1500 else 4096
    return rig


def memif(build, options=()):
    """(c) Two engines connected by memif."""
    rig = two_namespaces(build)
    path = rig.folder / "memif.sock"
    for side, role in (("a", "server"), ("b", "client")):
        v4, v6 = ADDRESS[side]
        rig.engine(side, [f"--vdev=net_memif0,role={role},socket={path},socket-abstract=no,"
                          f"bsize=8192,rsize=11"],
                   ["--port", "net_memif0", "--ip", f"{v4}/24,{v6}/64", "--mtu", "4200", *options])
    for side in "ab":
        wait_until(f"the link of memif side {side}", 20,
                   lambda: rig.statistics(side)["active"], 0.05)
    rig.mtu = 4096
    return rig


RIGS = {
    "same": same_host,
    "veth1500": lambda build: veth(build, 1500),
    "veth4200": lambda build: veth(build, 4200),
    "netdev1500": lambda build: netdev(build, 1500),
    "netdev4200": lambda build: netdev(build, 4200),
    "xdp1500": lambda build: netdev(build, 1500, "af_xdp"),
    "memif": memif,
    "vlan4200": lambda build: veth(build, 4200, ["--vlan", "7"]),
    "tap1500": tap,
    "hugepages": huge_pages,
    # each lcore has one processor only, and ibv_rc_pingpong gives up when an lcore waits for it for 1.7 s
    "lcores": lambda build: same_host(build, ["-l", "0,1"], favoured=True),
    "lcores4200": lambda build: veth(build, 4200, eal=["-l", "0,1"], favoured=True),
}
