# SPDX-License-Identifier: BSD-3-Clause
"""Programs that look for devices in the file system: UCX, libfabric, infiniband-diags, shell.

`uroce run` shows them the device's files through mounts or through the preload library. No other
process sees these files, and they disappear with the program and with the engine.
"""

import os
import pathlib
import re
import signal
import time

import programs
from connections import await_listener
from programs import NOBODY
from rig import ADDRESS, RIGS, Failure, sh, wait_until

PLACES = ("same", "veth4200", "netdev1500")

# (name, UCX_TLS or None for UCX's own choice, words of ucx_perftest)
UCX = [
    ("rc-tag_lat", "rc_v", "-t tag_lat -n 2000 -s 8"),
    ("rc-tag_bw", "rc_v", "-t tag_bw -n 500 -s 65536"),
    ("rc-am_bw", "rc_v", "-t ucp_am_bw -n 500 -s 4096"),
    ("rc-put_bw", "rc_v", "-t ucp_put_bw -n 2000 -s 4096"),
    ("rc-get", "rc_v", "-t ucp_get -n 500 -s 65536"),
    ("rc-add", "rc_v", "-t ucp_add -n 500 -s 8"),
    ("rc-fadd", "rc_v", "-t ucp_fadd -n 500 -s 8"),
    ("rc-cswap", "rc_v", "-t ucp_cswap -n 500 -s 8"),
    ("rc-stream_bw", "rc_v", "-t stream_bw -n 500 -s 4096"),
    ("ud-tag_lat", "ud_verbs", "-t tag_lat -n 1000 -s 8"),
    ("ud-tag_bw", "ud_verbs", "-t tag_bw -n 200 -s 16384"),
    ("both", "rc_verbs,ud_verbs", "-t tag_bw -n 500 -s 4096"),
    # woken by completion events: it polls, arms and sleeps without polling again
    ("rc-sleep", "rc_v", "-t tag_lat -E sleep -n 1000 -s 8"),
    ("ud-sleep", "ud_verbs", "-t tag_lat -E sleep -n 200 -s 8"),
    ("own-choice", None, "-t tag_lat -n 1000 -s 4096"),
]
# (name, words of fi_pingpong)
LIBFABRIC = [
    ("msg", "-p verbs -e msg"),
    ("rdm", "-p verbs;ofi_rxm -e rdm"),
    ("dgram", "-p verbs -e dgram -d uroce0-dgram"),
    ("rxd", "-p verbs;ofi_rxd -e rdm"),
]
ELSEWHERE = {"rc-tag_bw", "rc-put_bw", "ud-tag_lat", "msg", "rdm"}
QUICK = {"rc-tag_bw", "rc-get", "rc-fadd", "rc-sleep", "ud-tag_lat", "own-choice", "msg", "rdm"}


def run_pair(rig, server_words, client_words, port, env=None, wrapper=(), limit=60,
             ends=lambda rig, program, side, limit: program.succeed(limit)):
    server = rig.program(rig.sides[0], server_words, wrapper, f"{server_words[0]}-server", env)
    try:
        server.await_listening(port)
        client = rig.program(rig.sides[1], client_words, wrapper, f"{client_words[0]}-client", env)
        try:
            text = ends(rig, client, rig.sides[1], limit)
            ends(rig, server, rig.sides[0], 20)
        finally:
            client.end()
    finally:
        server.end()
    rig.check_healthy()
    return text


def ucx(rig, tls, line, wrapper=()):
    port = rig.port()
    words = ["ucx_perftest", "-p", str(port), *line.split()]
    env = {"UCX_WARN_UNUSED_ENV_VARS": "n"}
    if tls:
        env |= {"UCX_TLS": tls, "UCX_NET_DEVICES": "uroce0:1"}
    text = run_pair(rig, words, [*words, rig.control], port, env, wrapper)
    final = re.search(r"^Final:\s+\d+\s+(\S+)\s+\S+\s+\S+\s+\S+\s+(\S+)", text, re.MULTILINE)
    if not final:
        raise Failure(f"ucx_perftest printed no figures: {text[-200:]!r}")
    return f"{final[1]} us typical, {final[2]} MB/s"


def io_demo(rig):
    """UCX's own client and server, which connect through rdma_cm and check what they read."""
    values = {"port": rig.port()}
    words = ["io_demo", "-p", str(values["port"]), "-d", "4096:65536", "-o", "read,write", "-q"]
    env = {"UCX_TLS": "rc,self", "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm"}
    server = rig.program(rig.sides[0], words, name="io_demo-server", env=env)
    try:
        await_listener(rig, server, words, values)
        client = rig.program(rig.sides[1], [*words, "-i", "300", "-c", "1",
                                            ADDRESS[rig.sides[0]][0]],
                             name="io_demo-client", env=env)
        try:
            if "Client exit with status 'OK'" not in client.succeed(40):
                raise Failure(f"io_demo: {client.tail()}")
        finally:
            client.end()
        if not server.alive():
            raise Failure(f"the server ended with {server.popen.returncode}: {server.tail()}")
    finally:
        server.end()
    rig.check_healthy()
    return "300 reads and writes"


class Closed(Failure):
    """A program waits for completions of a queue pair that it has destroyed."""


PINGS = 40  # of each size
CLOSED_S = 2  # that a program goes on without queue pairs: it has lost its completions


def succeed_unless_closed(rig, program, side, limit):
    """ofi_rxm closes a connection when its peer has left, and with it goes what is in the completion queue."""
    now = time.monotonic()
    end = now + limit
    had = now if program.name.endswith("-server") else None  # queue pairs: a server's client has ended
    while program.alive() and now < end:
        if rig.statistics(side)["qps"] > 0:
            had = now
        elif had is not None and now - had > CLOSED_S:
            raise Closed(f"{program.name} has closed its queue pairs, and waits for them: {program.tail()}")
        program.wait_a_little(0.2)
        now = time.monotonic()
    if program.alive():
        raise Failure(f"{program.name} did not end within {limit} s: {program.tail()}")
    return program.succeed(0)


def fi_pingpong(rig, line, wrapper):
    """The client's output. Each program leaves as soon as it has its own completions. One that did not get a processor
    meanwhile may see its connection's end before its last completions. It then reports that its receives are
    flushed, or it has destroyed the queue pair and waits for ever. Then the pingpong is repeated: never five times
    in a row."""
    for last in (False, False, False, False, True):
        port = rig.port()
        words = ["fi_pingpong", "-I", str(PINGS), *line.split()]
        try:
            return run_pair(rig, [*words, "-B", str(port)],
                            [*words, "-P", str(port), rig.control], port, wrapper=wrapper,
                            ends=succeed_unless_closed)
        except Closed:
            if last:
                raise
        except Failure as failure:
            late = re.match("fi_pingpong-.* ended with .*Work Request Flushed Error", str(failure))
            if last or not late:
                raise
    return ""


def libfabric(rig, line, wrapper=()):
    text = fi_pingpong(rig, line, wrapper)
    rows = re.findall(rf"^(\d+\w?)\s+{PINGS}\s+={PINGS}\s+\S+\s+\S+\s+(\S+)\s+(\S+)", text, re.MULTILINE)
    if not rows:
        raise Failure(f"fi_pingpong printed no figures: {text[-200:]!r}")
    return f"{rows[0][0]} B {rows[0][2]} us; {rows[-1][0]} B {rows[-1][1]} MB/s"


# -- what programs see --------------------------------------------------------------------------

def says(rig, words, *expected, options=(), wrapper=(), env=None):
    """A program must end with status 0 and print lines like these."""
    text = rig.program(rig.sides[0], words, wrapper, env=env, options=options).succeed(30)
    for line in expected:
        if not re.search(line, text, re.MULTILINE):
            raise Failure(f"{' '.join(words)} printed no '{line}': {text[-300:]!r}")
    return text


def tools(rig):
    """Unmodified programs that list devices."""
    says(rig, ["ibv_devices"], r"^\s*uroce0\s+[0-9a-f]{16}$")
    says(rig, ["ibv_devinfo", "-v"], r"state:\s+PORT_ACTIVE", r"GID\[\s+1\]:.*, RoCE v2$")
    says(rig, ["ibstat"], "^CA 'uroce0'$", r"^\s+State: Active$", r"^\s+Link layer: Ethernet$")
    says(rig, ["ibstatus"], "state:\\s+4: ACTIVE", r"rate:\s+(10|40) Gb/sec", "link_layer:\\s+Ethernet")
    says(rig, ["ucx_info", "-d"], r"Transport: rc_verbs$", r"Transport: ud_verbs$",
         r"Device: uroce0:1$")
    says(rig, ["fi_info", "-p", "verbs"], "domain: uroce0$", "domain: uroce0-dgram$",
         "type: FI_EP_MSG$")
    return "ibv_devices, ibv_devinfo, ibstat, ibstatus, ucx_info, fi_info"


GID_FILES = "cat /sys/class/infiniband/uroce0/ports/1/gids/1 /dev/null"
LINK = ["sh", "-c", "ls /sys/class/infiniband /sys/class/infiniband_verbs && test -c "
        "/dev/infiniband/uroce0 && test ! -e /sys/class/infiniband/uroce1 && "
        "cd /sys/class/infiniband/uroce0/ports/1 && cat state gid_attrs/types/1 && "
        f"{GID_FILES} && echo x >/dev/null && ls /sys/class/net"]
NO_SYS_ADMIN = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
USER_ROOT = ("unshare", "--user", "--map-root-user")
WAYS = [("mounts as root", "mounts", ()), ("preload as root", "preload", ()),
        ("mounts as nobody", "mounts", NOBODY), ("preload as nobody", "preload", NOBODY),
        ("auto as root", "auto", ()), ("auto as nobody", "auto", NOBODY),
        ("auto as root without CAP_SYS_ADMIN", "auto", NO_SYS_ADMIN),
        ("auto as root of a user namespace", "auto", USER_ROOT)]


def each_way(rig):
    v4 = "".join(f"{int(part):02x}" for part in ADDRESS[rig.sides[0]][0].split("."))
    gid = f"^0000:0000:0000:0000:0000:ffff:{v4[:4]}:{v4[4:]}$"
    for name, way, wrapper in WAYS:
        try:
            says(rig, LINK, "^uroce0$", "^4: ACTIVE$", "^RoCE v2$", gid, "^lo$",
                 options=["--files", way], wrapper=wrapper)
        except Failure as problem:
            raise Failure(f"{name}: {problem}") from None
    return f"{len(WAYS)} ways"


def host_sees():
    """What this machine shows, which has no RDMA device, and the mounts of this process."""
    there = [path for path in ("/sys/class/infiniband/uroce0", "/dev/infiniband/uroce0")
             if os.path.lexists(path)]
    mounts = pathlib.Path("/proc/self/mountinfo").read_text().count("/sys/class")
    return there, mounts


def nothing_left(rig):
    """Programs leave nothing behind, whether they end or are killed, and other processes see
    nothing."""
    before = host_sees()
    if before[0]:
        raise Failure(f"{before[0]} are there without uroce run")
    for way in ("mounts", "preload"):
        files = set(rig.folder.rglob("*"))
        program = rig.program(rig.sides[0], ["sh", "-c", "test -e /sys/class/infiniband/uroce0 && "
                                             "echo there && exec sleep 60"],
                              options=["--files", way])
        try:
            program.expect("^there$", 20)
            if host_sees() != before:
                raise Failure(f"{way}: the host sees {host_sees()}, before it saw {before}")
            program.signal(signal.SIGKILL)
            program.wait(5)
        finally:
            program.end()
        left = {path for path in set(rig.folder.rglob("*")) - files if path != program.log}
        if host_sees() != before or left:
            raise Failure(f"{way}: {host_sees()} and {left} are left")
    return "nothing"


def without(rig):
    """--no-files, an engine without files, and a way that is not available."""
    look = ["sh", "-c", "test ! -e /sys/class/infiniband/uroce0 && echo none; "
            "echo \"files=$UROCE_FILES$LD_PRELOAD\""]
    says(rig, look, "^none$", "^files=$", options=["--no-files"])
    says(rig, look, "^none$", "^files=$", options=["--files", "none"])
    folder = pathlib.Path(rig.socket(rig.sides[0]) + ".files")
    aside = folder.with_name("aside")
    folder.rename(aside)
    try:
        says(rig, look, "^none$", "^files=$")
        program = rig.program(rig.sides[0], look, options=["--files", "preload"])
        if program.wait(10) != 1 or "s.files: No such file" not in program.output().replace(
                folder.name, "s.files"):
            raise Failure(f"--files preload without files: {program.output()!r}")
    finally:
        aside.rename(folder)
    program = rig.program(rig.sides[0], look, ("setpriv", "--bounding-set=-sys_admin"),
                          options=["--files", "mounts"])
    if program.wait(10) != 1 or "no mount namespace" not in program.output():
        raise Failure(f"--files mounts without CAP_SYS_ADMIN: {program.output()!r}")
    return "explained"


def engine_ends(build):
    """The files are the engine's: they disappear with it, also for a program that still runs."""
    with RIGS["same"](build) as rig:
        folder = pathlib.Path(rig.socket("a") + ".files")
        # its files go one after the other, and then their folder
        watch = ["sh", "-c", "echo begun; while test -e /sys/class/infiniband/uroce0/node_type || "
                 "test -e /sys/class/infiniband/uroce0; do sleep 0.05; done; echo gone"]
        watchers = [rig.program("a", watch, options=["--files", way])
                    for way in ("mounts", "preload")]
        for watcher in watchers:
            watcher.expect("^begun$", 20)
        rig.engines["a"].end()
        for watcher in watchers:
            watcher.expect(r"gone\s*$", 20)
        if folder.exists():
            raise Failure(f"{folder} is left behind by the engine")
        # a killed engine cannot clean up; the next one at its place does
        (folder / "class/infiniband/old").mkdir(parents=True)
        rig.engine("a", options=["--ip", "10.7.0.1/24"])
        if (folder / "class/infiniband/old").exists():
            raise Failure(f"{folder}: the files of a dead engine are still there")
        says(rig, ["ibstat"], "^CA 'uroce0'$")
    return "its files go with it"


def follows(rig):
    """Running programs see a new address, a removed one, and the state of the link."""
    device = "wire"
    v4 = "0000:0000:0000:0000:0000:ffff:0a07:0909"
    gids = "/sys/class/infiniband/uroce0/ports/1/gids"
    watch = ["sh", "-c", f"echo begun; until grep -q {v4} {gids}/*; do sleep 0.05; done; "
             f"f=$(grep -l {v4} {gids}/*); echo seen as $(cat {gids}/../gid_attrs/types/${{f##*/}}) "
             f"on $(cat {gids}/../gid_attrs/ndevs/${{f##*/}}); "
             f"while grep -q {v4} {gids}/*; do sleep 0.05; done; echo lost; "
             f"until grep -q DOWN {gids}/../state; do sleep 0.05; done; echo down; "
             f"until grep -q ACTIVE {gids}/../state; do sleep 0.05; done; echo up"]
    watchers = [rig.program(rig.sides[0], watch, options=["--files", way])
                for way in ("mounts", "preload")]
    for watcher in watchers:
        watcher.expect("^begun$", 20)
    steps = [(("address", "add", "10.7.9.9/24", "dev", device), f"^seen as RoCE v2 on {device}$"),
             (("address", "del", "10.7.9.9/24", "dev", device), "^lost$"),
             (("link", "set", device, "down"), "^down$"), (("link", "set", device, "up"), "^up$")]
    # keep the IPv6 address that later cases use: by default the kernel drops it with the link
    sh(*rig.inside(rig.sides[0]), "sysctl", "-qw",
       f"net.ipv6.conf.{device}.keep_addr_on_down=1")
    for words, expected in steps:
        rig.ip(rig.sides[0], *words)
        for watcher in watchers:
            watcher.expect(re.compile(expected, re.MULTILINE), 15)
    for watcher in watchers:
        watcher.succeed(10)
    return "addresses and link"


def renamed(rig):
    """The interface is renamed: addresses stay and are followed, and programs see the new name."""
    side = rig.sides[0]

    def rename(old, new):
        rig.ip(side, "link", "set", old, "down")
        rig.ip(side, "link", "set", old, "name", new)
        rig.ip(side, "link", "set", new, "up")
        wait_until(f"the name {new}", 15,
                   lambda: rig.program(side, ["ls", "/sys/class/infiniband/uroce0/device/net"])
                   .succeed(10).strip() == new, 0.2)

    def has(address):
        return address in rig.statistics(side)["addresses"]

    sh(*rig.inside(side), "sysctl", "-qw", "net.ipv6.conf.wire.keep_addr_on_down=1")
    rename("wire", "other")
    try:
        if not has(ADDRESS[side][0]) or not has(ADDRESS[side][1]):
            raise Failure(f"{rig.statistics(side)['addresses']} of {ADDRESS[side]} are left")
        for verb in ("add", "del"):
            rig.ip(side, "address", verb, "10.7.9.9/24", "dev", "other")
            wait_until(f"{verb} 10.7.9.9", 15, lambda: has("10.7.9.9") == (verb == "add"))
        return programs.run_pair(rig, "ibv_rc_pingpong -n 100 -c".split())
    finally:
        rename("other", "wire")


def cases():
    """Yields (place, name, function of a rig, quick)."""
    for place in PLACES:
        for name, tls, line in UCX:
            if place == "same" or name in ELSEWHERE:
                yield (place, f"ucx/{name}", lambda rig, t=tls, l=line: ucx(rig, t, l),
                       place == "same" and name in QUICK)
        yield place, "ucx/io_demo", io_demo, place == "same"
        for name, line in LIBFABRIC:
            if place == "same" or name in ELSEWHERE:
                yield (place, f"libfabric/{name}", lambda rig, l=line: libfabric(rig, l),
                       place == "same" and name in QUICK)
    for name, wrapper in (("nobody", NOBODY), ("userns", USER_ROOT)):
        yield ("same", f"ucx/rc-as-{name}",
               lambda rig, w=wrapper: ucx(rig, "rc_v", "-t tag_bw -n 200 -s 65536", w), True)
        yield ("same", f"libfabric/rdm-as-{name}",
               lambda rig, w=wrapper: libfabric(rig, "-p verbs;ofi_rxm -e rdm", w), True)
    yield ("same", "ucx/own-choice-as-nobody",
           lambda rig: ucx(rig, None, "-t tag_lat -n 500 -s 100000", NOBODY), True)
    for name, run in (("tools", tools), ("each-way", each_way), ("nothing-left", nothing_left),
                      ("without", without)):
        yield "same", f"files/{name}", run, True
    yield "netdev1500", "files/follows", follows, True
    yield "netdev1500", "files/renamed", renamed, True
