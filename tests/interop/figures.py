#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Figures from one guest, both stacks emulated alike: rxe with rxe, uroce with uroce.

    tests/interop/figures.py [--rounds N] [--build DIR]

Measures one rxe device with itself and one engine with two programs, in turn. The best round of
each counts, because the machine is not idle; the median is printed, too. Not over a veth: rxe of
Linux 6.1 has no sockets outside of the first network namespace, and within one all traffic is
local. Then connections: cmtime in the guest, and between the guest and an engine outside. Takes a
few minutes. Exit status 1 if a ratio of data is below 3.
"""

import argparse
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))
sys.path.insert(0, str(HERE))

import rig as rigs  # noqa: E402
from ends import Ours, Theirs, await_listener  # noqa: E402
from rig import Failure, wait_until  # noqa: E402
from run import wire  # noqa: E402

LEAST = 3
# (octets, messages of rxe, messages of uroce, column of the figure, its unit)
SIZES = [(65536, 300, 1500, 1, "MiB/s"), (8, 10000, 50000, 2, "M messages/s")]
# The guest's CPU for the programs; the engine runs on CPU 0. With two CPUs an emulated one waits
# for the other whenever the host is busy, so figures on one CPU are steadier.
PLACES = {"on one CPU": "0", "on two CPUs": "1"}
SOCKET = "/run/uroce.sock"
CONNECTIONS = 1000


class Rxe:
    """Programs in the guest, on its kernel's device."""
    name = "rxe"

    def __init__(self, wire):
        self.guest = wire.guest
        self.address = wire.theirs[0]

    cpu = "0"

    def words(self, words):
        return ["taskset", "-c", self.cpu, *words]

    def device(self):
        return ["-d", "rxe0", "-x", "1"]

    def listens(self, number, port):
        return Theirs.listens(self, number, port)

    def output(self, number):
        return self.guest.output(number)


class Uroce(Rxe):
    """The same on an engine in the guest."""
    name = "uroce"

    def __init__(self, wire):
        super().__init__(wire)
        self.folder = wire.rig.build / "apps"
        # its control thread, too, because rxe works on its callers' CPU
        self.number = self.guest.start(["taskset", "-c", "0", str(self.folder / "uroced"),
                                        "--no-huge", "-m", "256", "-l", "0", "--",
                                        "--socket", SOCKET])
        wait_until("the engine in the guest", 60, self.serves, 0.5)

    def serves(self):
        status, output = self.guest.output(self.number)
        if status is not None:
            raise Failure(f"the engine in the guest ended with {status}: {output.strip()[-300:]}")
        return "serving" in output

    def words(self, words):
        return super().words([str(self.folder / "uroce"), "run", "--quiet", "--socket", SOCKET,
                              "--", *words])

    def device(self):
        return ["-d", "uroce0", "-x", "1"]

    def listens(self, number, port):
        return f":{port} " in self.guest.run([str(self.folder / "uroce"), "stat", "--cm",
                                              "--socket", SOCKET])


def pair(stack, server, client, listening, limit=120):
    """Runs a pair; returns the client's output."""
    guest = stack.guest
    number = guest.start(stack.words(server))
    try:
        listening(number)
        status, output = guest.finish(guest.start(stack.words(client)), limit)
        if status != 0:
            raise Failure(f"{client[0]} on {stack.name} ended with {status}: "
                          f"{output.strip()[-200:]}")
        return output
    finally:
        guest.finish(number, 2)


def write_bw(rig, stack, octets, messages):
    """(octets, messages, peak, average, rate) as printed by perftest."""
    port = rig.port()
    words = ["ib_write_bw", "-F", "-s", str(octets), "-n", str(messages), "-p", str(port),
             *stack.device()]
    output = pair(stack, words, [*words, stack.address],
                  lambda number: stack.guest.listens(port, number))
    line = re.search(rf"^ *{octets} +{messages} +([\d.]+) +([\d.]+)\s+([\d.]+)", output, re.M)
    if not line:
        raise Failure(f"ib_write_bw on {stack.name} printed no figures: {output[-200:]}")
    return [float(word) for word in line.groups()]


def connect_us(output):
    """Microseconds per connection, of all steps together."""
    return sum(float(line[1]) for line in
               re.finditer(r"^(?:connect|resolve addr|resolve route|create qp)\s*:.*\s([\d.]+)$",
                           output, re.M))


def cmtime(address, port):
    words = ["cmtime", "-p", str(port), "-c", str(CONNECTIONS)]
    return [*words, "-b", address], [*words, "-s", address]


def compare_size(rig, stacks, rounds, size):
    """The ratio of the best figures, on one CPU and on two."""
    octets, *messages, column, unit = size
    best = {stack.name: 0 for stack in stacks}
    for place, cpu in PLACES.items():
        values = {stack.name: [] for stack in stacks}
        for _ in range(rounds):
            for stack, n in zip(stacks, messages):
                stack.cpu = cpu
                values[stack.name].append(write_bw(rig, stack, octets, n)[column])
        for name, found in values.items():
            best[name] = max(best[name], *found)
            print(f"ib_write_bw -s {octets}, {name} with {name}, {place}: {max(found):.3f} {unit} "
                  f"(median {statistics.median(found):.3f} of {rounds})")
        print(f"ib_write_bw -s {octets}, {place}: uroce is "
              f"{max(values['uroce']) / max(values['rxe']):.1f} times rxe", flush=True)
    return best["uroce"] / best["rxe"]


def compare_data(rig, stacks, rounds):
    """The worst of the ratios."""
    return min(compare_size(rig, stacks, rounds, size) for size in SIZES)


def connection_rates(wire, stacks):
    # A command to another emulated CPU waits until the host runs that CPU.
    for place, cpu in PLACES.items():
        for stack in stacks:
            stack.cpu = cpu
            port = wire.rig.port()
            server, client = cmtime(stack.address, port)
            output = pair(stack, server, client, lambda n: await_listener(stack, n, port))
            print_rate(f"{stack.name} with {stack.name}, in the guest, {place}", output)
    for server_end, client_end in ((Theirs(wire), Ours(wire)), (Ours(wire), Theirs(wire))):
        port = wire.rig.port()
        server, client = cmtime(server_end.addresses[0], port)
        running = server_end.start(server)
        try:
            await_listener(server_end, running, port)
            status, output = client_end.finish(client_end.start(client), 120)
            if status != 0:
                raise Failure(f"cmtime ended with {status}: {output[-200:]}")
        finally:
            server_end.stop(running)
        client = "uroce outside" if client_end.name == "ours" else "rxe"
        server = "rxe" if client_end.name == "ours" else "uroce outside"
        print_rate(f"{client} to {server}", output)


def print_rate(who, output):
    us = connect_us(output)
    print(f"cmtime -c {CONNECTIONS}, {who}: {us:.0f} us per connection, {1e6 / us:.0f} connections/s",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--build", default=str(HERE.parents[1] / "build"), type=pathlib.Path)
    arguments = parser.parse_args()
    rigs.remove_leftovers()
    try:
        between = wire(arguments.build.resolve())
    except Failure as failure:
        print(f"the guest: {failure}")
        return 1
    try:
        stacks = [Rxe(between), Uroce(between)]
        ratio = compare_data(between.rig, stacks, arguments.rounds)
        connection_rates(between, stacks)
    except Failure as failure:
        print(failure)
        return 1
    finally:
        between.rig.close()
    return 0 if ratio >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
