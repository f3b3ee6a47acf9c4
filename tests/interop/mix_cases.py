# SPDX-License-Identifier: BSD-3-Clause
"""Random traffic of all kinds of requests over several queue pairs, both directions at once (mix/mix.h)."""

import contextlib
import dataclasses

from impaired import impaired
from rig import Failure


@dataclasses.dataclass
class Mix:
    """As client, uroce's program connects to the guest's."""
    name: str
    seeds: tuple
    mtu: int
    rounds: int
    quick: bool = False
    roles: tuple = ("client", "server")
    netem: tuple = ()  # in both directions
    requests = 40  # of a queue pair, in one round and direction
    limit = 150

    def run(self, wire, role):
        with impaired(wire.guest, self.netem) if self.netem else contextlib.nullcontext():
            return "; ".join(self.once(wire, role, seed) for seed in self.seeds)

    def once(self, wire, role, seed):
        port = wire.rig.port()
        program = str(wire.rig.build / "tests/interop/mix")
        words = [str(word) for word in (seed, self.rounds, self.requests, self.mtu, 1)]
        words += ["unordered"] if self.netem else []
        if role == "client":
            number = wire.guest.start([program, str(port), "-", *words])
            wire.guest.listens(port, number)
            ours = wire.rig.program("a", [program, str(port), wire.theirs[0], *words], name="mix")
        else:
            ours = wire.rig.program("a", [program, str(port), "-", *words], name="mix")
            ours.await_listening(port)
            number = wire.guest.start([program, str(port), wire.ours[0], *words])
        status, output = wire.guest.finish(number, self.limit)
        ours.wait_a_little(self.limit)
        mine = ours.popen.poll()
        ours.end()
        if status != 0 or mine != 0:
            # a line for each queue pair, if they wait for something (mix/waits.c)
            raise Failure(f"seed {seed}: ours ended with {mine}: {ours.output().strip()[-3000:]}; in the "
                          f"guest with {status}: {output.strip()[-3000:]}")
        return ours.output().strip()


def cases():
    yield Mix("mix/quick", seeds=(2,), mtu=1024, rounds=2, quick=True, roles=("client",))
    for mtu in (256, 512, 1024, 2048, 4096):
        yield Mix(f"mix/mtu-{mtu}", seeds=(mtu, mtu + 1), mtu=mtu, rounds=4)
    for name, netem in (("loss", ("loss", "1%")), ("reordering", ("delay", "2ms", "reorder", "25%")),
                        ("duplication", ("duplicate", "3%")),
                        ("all", ("loss", "3%", "duplicate", "2%", "delay", "2ms", "reorder", "20%"))):
        yield Mix(f"mix/{name}", seeds=(201, 203), mtu=1024, rounds=3, netem=netem)
