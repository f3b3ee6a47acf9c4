# SPDX-License-Identifier: BSD-3-Clause
"""Runs pairs of Debian's own verbs programs and reads their figures."""

import re

from rig import Failure

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
USER_NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork",
                  "--kill-child=SIGKILL")
WRAPPERS = {"root": (), "nobody": NOBODY, "userns": USER_NAMESPACE}

# The GID index of an address family: 0 is link-local, then as given to --ip or as on the interface.
GID = {"v4": "1", "v6": "2"}

# A multicast group of each family, in perftest's format.
MGID = {"v4": "0:0:0:0:0:0:0:0:0:0:255:255:239:7:8:9",
        "v6": "255:21:0:0:0:0:0:0:0:0:0:0:7:8:9:10"}


def pair_words(rig, words, family):
    """The words of both programs of a pair, and the TCP port that connects them."""
    port = rig.port()
    if words[0].endswith("_pingpong"):
        extra = ["-d", "uroce0", "-g", GID[family], "-p", str(port)]
    else:
        extra = ["-d", "uroce0", "-x", GID[family], "-F", "-p", str(port)]
        if "-u" not in words:
            # give up after 4 s instead of 0.5 s, as an engine may wait long for a CPU
            extra += ["-u", "17"]
    server = [words[0], *extra, *words[1:]]
    return server, [*server, rig.control], port


def start_pair(rig, words, family="v4", wrappers=((), ())):
    server_words, client_words, port = pair_words(rig, words, family)
    server = rig.program(rig.sides[0], server_words, wrappers[0], f"{words[0]}-server")
    server.await_listening(port)
    client = rig.program(rig.sides[1], client_words, wrappers[1], f"{words[0]}-client")
    return server, client


def run_pair_text(rig, words, family="v4", wrappers=((), ()), limit=120):
    """Runs a pair to its end and returns what the client printed."""
    server, client = start_pair(rig, words, family, wrappers)
    try:
        text = client.succeed(limit)
        server.succeed(15)
    finally:
        client.end()
        server.end()
    rig.check_healthy()
    return text


def run_pair(rig, words, family="v4", wrappers=((), ()), limit=120):
    """Runs a pair to its end and returns the client's figures as text."""
    return figures(words[0], run_pair_text(rig, words, family, wrappers, limit))


def table_rows(text):
    """The rows of numbers that perftest prints, one for each size. A deviation may be the root of a number slightly
    below zero."""
    return [line.split() for line in text.splitlines()
            if re.fullmatch(r"\s*\d+\s+\d+(\s+([\d.]+|-nan))+\s*", line)]


def figures(program, text):
    if program == "ibv_xsrq_pingpong":
        if not re.search(r"^success$", text, re.MULTILINE):
            raise Failure(f"{program} printed no success: {text[-200:]!r}")
        return "success"
    if program.endswith("_pingpong"):
        match = re.search(r"= ([\d.]+) usec/iter", text)
        if not match:
            raise Failure(f"{program} printed no figures: {text[-200:]!r}")
        return f"{float(match[1]):.1f} us a round trip"
    rows = table_rows(text)
    if not rows:
        raise Failure(f"{program} printed no figures: {text[-200:]!r}")
    ends = rows[:1] if len(rows) == 1 else [rows[0], rows[-1]]
    if program.endswith("_lat"):
        return "; ".join(f"{row[0]} B {row[4]} us typical" for row in ends)
    return "; ".join(f"{row[0]} B {float(row[3]):.0f} MiB/s {float(row[4]):.3f} M/s" for row in ends)
