# SPDX-License-Identifier: BSD-3-Clause
"""perftest's programs for whole frames (RAW_PACKET queue pairs and flow steering), end to end."""

import re

from rig import ADDRESS, Failure

IP4 = f"-J {ADDRESS['a'][0]} -j {ADDRESS['b'][0]} -K 7000 -k 7000"
IP6 = f"-J {ADDRESS['a'][1]} -j {ADDRESS['b'][1]} -K 7000 -k 7000"

# (name, words, quick). A lost frame is not repeated, so a program that counts frames sends no more
# at once than the other side has room for; the others run for a second.
ROWS = [
    ("bw", "raw_ethernet_bw -s 1024 -D 1", True),
    ("bw-udp", f"raw_ethernet_bw -s 256 -D 1 {IP4}", True),
    ("bw-tcp", f"raw_ethernet_bw -s 256 -D 1 --tcp {IP4}", False),
    ("bw-ipv6", f"raw_ethernet_bw -s 256 -D 1 --raw_ipv6 {IP6}", False),
    ("bw-vlan", "raw_ethernet_bw -s 256 -D 1 --vlan_en --vlan_pcp 3", False),
    ("bw-4qp", "raw_ethernet_bw -s 256 -D 1 -q 4", False),
    ("bw-list", "raw_ethernet_bw -s 64 -D 1 -l 8", False),
    ("bw-promiscuous", "raw_ethernet_bw -s 64 -D 1 --promiscuous", False),
    ("bw-both", "raw_ethernet_bw -s 256 -n 300 -b", False),
    ("lat", "raw_ethernet_lat -s 64 -n 500", True),
    ("lat-udp", f"raw_ethernet_lat -s 256 -n 500 {IP4}", False),
    # It refuses its default settings (a limit by software "can't be executed on non-BW tests");
    # with the limit by hardware it falls back to the same. It counts requests by --cq-mod but marks
    # none unless that is 1, and overruns its own array with bursts below 16.
    ("burst-lat", "raw_ethernet_burst_lat -s 64 -n 500 --rate_limit=2.5 -Q 1 --burst_size=32 "
                  "--reply_every=4", True),
]


def macs(rig):
    return [re.search(r"link/ether (\S+)", rig.ip(side, "link", "show", "wire"))[1].upper()
            for side in rig.sides]


def iterations(name, text):
    match = re.search(r"#bytes(?s:.*)^\s*\d+\s+(\d+)\s", text, re.MULTILINE)
    if not match or int(match[1]) == 0:
        raise Failure(f"{name} printed no figures: {text[-200:]!r}")
    return int(match[1])


def typical(name, text):
    """As it was printed: on a busy machine a figure of perftest may not be a number."""
    match = re.search(r"#bytes(?s:.*)^\s*\d+\s+\d+\s+\S+\s+\S+\s+(\S+)", text, re.MULTILINE)
    if not match:
        raise Failure(f"{name} printed no latency: {text[-200:]!r}")
    return match[1]


def pair(line, calm):
    """`calm`: with CALM_CLOCK. What runs without --quick also runs each program as it is."""
    words = line.split()

    def run(rig):
        rig.calm = calm
        try:
            return run_pair(rig)
        finally:
            rig.calm = True

    def run_pair(rig):
        mac = macs(rig)
        start = ["stdbuf", "-oL", words[0], "-d", "uroce0", "-F", *words[1:]]
        server = rig.program(rig.sides[0], [*start, "--server", "-B", mac[0], "-E", mac[1]],
                             name=f"{words[0]}-server")
        server.expect("#bytes", 20)
        client = rig.program(rig.sides[1], [*start, "--client", "-B", mac[1], "-E", mac[0]],
                             name=f"{words[0]}-client")
        try:
            texts = [client.succeed(20), server.succeed(15)]
        finally:
            client.end()
            server.end()
        rig.check_healthy()
        sent = iterations(client.name, texts[0])
        if words[0] == "raw_ethernet_burst_lat":
            return f"{sent} frames"  # only one side has figures, of its whole run time
        if words[0] == "raw_ethernet_lat":
            iterations(server.name, texts[1])
            return f"{typical(client.name, texts[0])} us typical"
        return f"{iterations(server.name, texts[1])} of {sent} frames"
    return run


def flow_rate(rig):
    """Creates and destroys steering rules."""
    mac = macs(rig)
    words = ["raw_ethernet_fs_rate", "-d", "uroce0", "-F", "--server", "-n", "500", "-B", mac[0],
             "-E", mac[1]]
    text = rig.program(rig.sides[0], words).succeed(20)
    match = re.search(r"^500(\s+[\d.]+){4}\s+([\d.]+)\s*$", text, re.MULTILINE)
    if not match:
        raise Failure(f"{words[0]} printed no figures: {text[-200:]!r}")
    return f"{float(match[2]):.0f} rules a second"


# Only a few with a kernel on the port: it answers frames to ports that it does not know.
NETDEV = {"bw", "bw-both", "lat", "burst-lat"}


def cases():
    for name, line, quick in ROWS:
        places = {"veth1500": quick}
        if name in NETDEV:
            places |= {"netdev1500": name == "lat", "xdp1500": name in ("bw-both", "burst-lat")}
        for place, is_quick in places.items():
            yield place, f"raw-ethernet-{name}", pair(line, is_quick), is_quick
    yield "veth1500", "raw-ethernet-fs-rate", flow_rate, True
