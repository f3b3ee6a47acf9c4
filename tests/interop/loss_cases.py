# SPDX-License-Identifier: BSD-3-Clause
"""One packet in a hundred is lost in the guest, in both directions; and how READs continue after a
loss.

Not here: UC and UD, whose programs would wait for ever for lost data."""

import dataclasses

from case import ProgramCase, TheirsStays
from impaired import Capture, lossy
from peers import Pair, same
from rig import Failure

FIRST, MIDDLE, LAST, ONLY = 0x0d, 0x0e, 0x0f, 0x10
READ_REQUEST = 0x0c
PSNS = 1 << 24


REPEATED = 20  # packets to a peer that is gone: more than ending programs can have under way
PATIENT = ("-F", "-u", "16")  # verbs_cases.perftest explains this


@dataclasses.dataclass
class LossCase:
    """Another case over a lossy path. It is repeated until a packet was lost.

    The last acknowledgement may be lost as well. Its sender ends, and rxe, for which a retry
    count of 7 means for ever (differs/retry-count-7), repeats its last message in vain. That is not
    uroce's fault, so the case is repeated then, too."""
    of: ProgramCase
    percent: float = 1
    quick: bool = False
    roles: tuple = ("client", "server")
    attempts = 5

    @property
    def name(self):
        return f"loss/{self.of.name.split('/', 1)[1]}"

    def run(self, wire, role):
        with lossy(wire.guest, self.percent) as lost:
            for _ in range(self.attempts):
                before = to_nobody(wire)
                try:
                    self.of.run(wire, role)
                except TheirsStays:
                    if to_nobody(wire) - before < REPEATED:
                        raise
                    continue
                if lost() > 0:
                    return
        raise Failure(f"in {self.attempts} attempts no packet was lost, or the last acknowledgement was")


def to_nobody(wire):
    return wire.rig.statistics("a")["by_reason"]["qpn_unknown"]


def repetitions(packets, requester, responder, mtu):
    """(restarts from the beginning, opcodes of answers to later restarts)"""
    begun, ahead, whole, waiting, answers = set(), None, 0, {}, []
    for p in packets:
        if p.source == requester and p.opcode == READ_REQUEST:
            past = (p.psn + max(1, -(-p.reth // mtu))) % PSNS
            if ahead is None or (p.psn - ahead) % PSNS < PSNS // 2:
                begun.add(p.psn)
                ahead = past
            elif p.psn in begun:
                whole += 1
            else:
                waiting[p.psn] = True
        elif p.source == responder and waiting.pop(p.psn, False):
            answers.append(p.opcode)
    return whole, answers


@dataclasses.dataclass
class ReadRestart:
    """Large READs whose responses are lost, until some were restarted in the middle. Checks the
    data and the opcode with which the responder continues (protocol-map 90)."""
    name: str = "loss/read-restarts"
    quick: bool = True
    roles: tuple = ("client", "server")
    length = 256 << 10
    mtu = 1024
    rounds = 12
    at_a_time = 4
    enough = 3

    def run(self, wire, role):
        ours, theirs = wire.ours[0], wire.theirs[0]
        requester, responder = (ours, theirs) if role == "client" else (theirs, ours)
        way = "out" if role == "client" else "in"
        with Pair(wire, role) as pair:
            source = pair.responder.region(self.length, seed=5)
            target = pair.requester.region(self.length)
            sum = pair.responder.sum(source["mr"])
            qp, _ = pair.connect(requester={"mtu": self.mtu, "timeout": 15},
                                 responder={"mtu": self.mtu})
            whole, answers = 0, []
            for _ in range(self.rounds):
                with Capture(wire.guest) as capture, lossy(wire.guest, 2, (way,)):
                    for id in range(self.at_a_time):
                        pair.requester.do("zero", mr=target["mr"])
                        pair.requester.do("send", qp=qp, op="read", mr=target["mr"], id=id,
                                          len=self.length, raddr=source["addr"],
                                          rkey=source["rkey"])
                        pair.requester.completes(qp, ["SUCCESS"], ms=60000)
                        same("what was read", pair.requester.sum(target["mr"]), sum)
                restarts = repetitions(capture.packets, requester, responder, self.mtu)
                whole += restarts[0]
                answers += restarts[1]
                if len(answers) >= self.enough:
                    break
        wrong = [hex(opcode) for opcode in answers if opcode not in (MIDDLE, LAST)]
        if wrong:
            raise Failure(f"a READ that began again in its middle was answered with {wrong}")
        if len(answers) < self.enough:
            raise Failure(f"{len(answers)} READs began again in their middle, {whole} at their "
                          f"beginning: {self.enough} were waited for")
        return f"{len(answers)} went on with MIDDLE or LAST; {whole} began from the beginning"


def cases():
    for kind in ("rc", "srq"):
        yield LossCase(ProgramCase(f"v4/{kind}_pingpong", [f"ibv_{kind}_pingpong", "-n", "500"]))
    for what in ("write", "read", "send"):
        yield LossCase(ProgramCase(f"v4/{what}_bw", [f"ib_{what}_bw", *PATIENT, "-s", "65536", "-n",
                                                     "40"], limit=120), quick=what == "write")
    yield LossCase(ProgramCase("v4/atomic_bw", ["ib_atomic_bw", *PATIENT, "-A", "FETCH_AND_ADD",
                                                "-n", "300"], limit=120))
    yield ReadRestart(roles=("server",))
    yield ReadRestart(roles=("client",), quick=False)
