#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""How much loss costs uroce with rxe, in both roles, and rxe with rxe.

    tests/interop/lossy_figures.py [--loss PERCENT] [--rounds N] [--build DIR]

The guest drops packets that it sends and receives. For rxe with rxe there are two guests on a bridge, and the second
one drops. All of them are emulated on this machine's processors, so only figures of one run can be compared. Prints the
median of the rounds, without a verdict."""

import argparse
import contextlib
import pathlib
import re
import signal
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))
sys.path.insert(0, str(HERE))

from run import MTU, OURS, THEIRS, wire  # noqa: E402  (before guest, which changes the path)
import rig as rigs  # noqa: E402
from guest import Guest  # noqa: E402
from impaired import lossy  # noqa: E402
from rig import Failure  # noqa: E402

WORDS = {
    "WRITE 64 KiB": ["ib_write_bw", "-F", "-s", "65536", "-n", "200"],
    "SEND 64 KiB": ["ib_send_bw", "-F", "-s", "65536", "-n", "200"],
    "READ 64 KiB": ["ib_read_bw", "-F", "-s", "65536", "-n", "200"],
}
PATIENT = ["-u", "16"]  # an emulated guest may wait long for a processor
LIMIT = 180  # seconds for one program


def bandwidth(output):
    """MiB/s on average."""
    rows = re.findall(r"^\s*65536\s+\d+\s+[\d.]+\s+([\d.]+)", output, re.M)
    if not rows:
        raise Failure(f"no figures: {output.strip()[-200:]}")
    return float(rows[-1])


def with_uroce(between, words, client):
    """uroce is the client, or the server; rxe is the other one."""
    port = between.rig.port()
    words = [*words, *PATIENT, "-p", str(port), "-x", "1"]
    guest = between.guest
    if client:
        number = guest.start([*words, "-d", "rxe0"])
        guest.listens(port, number)
        program = between.rig.program("a", [*words, between.theirs[0]])
        try:
            return bandwidth(program.succeed(LIMIT))
        finally:
            program.end()
            guest.signal(number, 15)
            guest.finish(number, 10)
    program = between.rig.program("a", words)
    try:
        program.await_listening(port)
        return in_guest(guest, [*words, "-d", "rxe0", between.ours[0]])
    finally:
        program.end()


def in_guest(guest, words):
    status, output = guest.finish(guest.start(words), LIMIT)
    if status != 0:
        raise Failure(f"in the guest, {words[0]} ended with {status}: {output.strip()[-200:]}")
    return bandwidth(output)


def rxe_with_rxe(first, second, words, port):
    words = [*words, *PATIENT, "-p", str(port), "-x", "1", "-d", "rxe0"]
    number = first.start(words)
    try:
        first.listens(port, number)
        return in_guest(second, [*words, first.address])
    finally:
        first.signal(number, 15)
        first.finish(number, 10)


@contextlib.contextmanager
def two_guests(build):
    """rxe at both ends: two guests whose taps are on one bridge."""
    rig = rigs.Rig(build)
    try:
        rig.namespace("a")
        rig.ip("a", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        rig.ip("a", "link", "set", "br0", "mtu", str(MTU), "up")
        rig.ip("a", "address", "add", "10.9.0.250/24", "dev", "br0")
        for tap in ("tap0", "tap1"):
            rigs.sh(*rig.inside("a"), "ip", "tuntap", "add", tap, "mode", "tap")
            rig.ip("a", "link", "set", tap, "mtu", str(MTU), "master", "br0", "up")
        yield (rig, *(Guest(rig, "a", tap, addresses, MTU, build / "interop", mac)
                      for tap, addresses, mac in (("tap0", OURS, "52:54:00:12:34:01"),
                                                  ("tap1", THEIRS, "52:54:00:12:34:02"))))
    finally:
        rig.close()


def measure(what, guest, loss, rounds, run):
    """run(words) without loss and with it. A missing figure is reported, too."""
    for name, words in WORDS.items():
        found = {0: [], loss: []}
        for _ in range(rounds):
            for percent in found:
                try:
                    with lossy(guest, percent) if percent else contextlib.nullcontext():
                        found[percent].append(run(words))
                except Failure as failure:
                    print(f"{what}, {name} at {percent} %: {failure}", file=sys.stderr)
        middle = {percent: statistics.median(v) if v else None for percent, v in found.items()}
        left = middle[loss] / middle[0] if middle[loss] and middle[0] else None
        print(f"| {what} | {name} | {cell(middle[0])} | {cell(middle[loss])} | "
              f"{'fails' if left is None else f'{left * 100:.1f} %'} |", flush=True)


def cell(value):
    return "fails" if value is None else f"{value:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loss", type=float, default=1, metavar="PERCENT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default=HERE.parents[1] / "build", type=pathlib.Path)
    arguments = parser.parse_args()
    if not 0 < arguments.loss <= 50:
        parser.error(f"--loss must be in 0 .. 50 percent, not {arguments.loss}")
    if arguments.rounds < 1:
        parser.error(f"--rounds must be 1 or more, not {arguments.rounds}")
    # A signal ends the run as an exception, so that everything is cleaned up.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    rigs.remove_leftovers()
    build, loss, rounds = arguments.build.resolve(), arguments.loss, arguments.rounds
    print(f"| | | no loss, MiB/s | {loss:g} % lost | left |\n|---|---|---|---|---|", flush=True)
    try:
        between = wire(build)
        try:
            for client in (True, False):
                measure("uroce to rxe" if client else "rxe to uroce", between.guest, loss, rounds,
                        lambda words: with_uroce(between, words, client))
        finally:
            between.rig.close()
        with two_guests(build) as (rig, first, second):
            measure("rxe to rxe", second, loss, rounds,
                    lambda words: rxe_with_rxe(first, second, words, rig.port()))
    except (Failure, rigs.Skipped) as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
