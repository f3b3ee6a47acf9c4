# SPDX-License-Identifier: BSD-3-Clause
"""Runs peer/peer.c at both ends and commands it: objects, connected queue pairs, work requests and
completions."""

import dataclasses

from inside import connect
from rig import Failure, wait_until

STATUS = ["SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR",
          "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR",
          "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR"]
STATE = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"]
EVENT = ["CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED"]
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC, MW_BIND = 1, 2, 4, 8, 16
REMOTE = REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC
ALL = LOCAL_WRITE | REMOTE


@dataclasses.dataclass
class Completion:
    id: int
    status: str
    length: int
    us: int  # since the last request was posted

    def __str__(self):
        return f"{self.id}: {self.status}"


class Peer:
    """`side` is ours or theirs."""

    def __init__(self, wire, side, sgid=1):
        self.wire, self.side, self.sgid = wire, side, sgid
        port = wire.rig.port()
        words = [str(wire.rig.build / "tests/interop/peer"), str(port)]
        self.number = self.program = None
        if side == "ours":
            self.program = wire.rig.program("a", words, name="peer")
            address = "127.0.0.1"
        else:
            self.number = wire.guest.start(words)
            address = wire.guest.address
        namespace = f"{wire.rig.prefix}a"
        self.connection = connect(namespace, address, port, 30)
        self.stream = self.connection.makefile("rw")
        self.device = self.do("open", sgid=sgid)

    def close(self):
        """Ends the program; it prints nothing at its end."""
        self.connection.close()
        self.stream = None
        if self.program:
            self.program.end()

    def said(self):
        if self.program:
            return self.program.tail()
        return self.wire.guest.finish(self.number, 5)[1].strip()[-200:]

    def ask(self, command, **keys):
        """Returns the answer as it is; a failing verb is an answer, too."""
        line = " ".join([command, *(f"{key}={value}" for key, value in keys.items())])
        limit = keys.get("ms", 0) / 1000 + 30
        self.connection.settimeout(limit)
        try:
            self.stream.write(line + "\n")
            self.stream.flush()
            answer = self.stream.readline()
        except OSError:
            raise Failure(f"{self.side}: no answer to '{line}' within {limit:.0f} s") from None
        if not answer:
            raise Failure(f"{self.side}: it ended at '{line}': {self.said()}")
        return answer.strip()

    def do(self, command, **keys):
        answer = self.ask(command, **keys)
        if not answer.startswith("ok"):
            raise Failure(f"{self.side}: {command} {keys}: {answer}")
        return {key: value if key in ("gid", "wc", "event") else int(value, 0)
                for key, value in (word.split("=", 1) for word in answer.split()[1:])}

    def region(self, length, access=ALL, seed=None):
        mr = self.do("mr", len=length, access=access)
        mr["len"] = length
        if seed is not None:
            self.do("fill", mr=mr["mr"], seed=seed)
        return mr

    def poll(self, qp, cq="send", n=1, ms=20000):
        """The completions that came in time, possibly none."""
        words = self.do("poll", qp=qp, cq=cq, n=n, ms=ms)["wc"].split(",")[:-1]
        rows = (map(int, word.split(":")) for word in words)
        return [Completion(id, STATUS[status] if status < len(STATUS) else str(status), length, us)
                for id, status, length, us in rows]

    def completes(self, qp, statuses, cq="send", ms=20000):
        """Returns the completions; fails unless they have exactly these statuses in this order."""
        got = self.poll(qp, cq, len(statuses), ms)
        if [c.status for c in got] != list(statuses):
            raise Failure(f"{self.side}, {cq} queue: wanted {', '.join(statuses)} within "
                          f"{ms / 1000:.0f} s, got {', '.join(map(str, got)) or 'nothing'}")
        return got

    def event(self, ms):
        """The next asynchronous event and its queue pair (None: of no queue pair); None: none came.
        """
        said = self.do("event", ms=ms)
        if said["event"] == "none":
            return None
        number = int(said["event"])
        return EVENT[number] if number < len(EVENT) else str(number), said.get("qp")

    def raises(self, qp, event, ms=20000):
        """Fails unless the events are exactly this one, of this queue pair (or none at all)."""
        got = self.event(ms) if event else None
        if event and got != (event, qp):
            raise Failure(f"{self.side}: wanted the event {event} of queue pair {qp} within "
                          f"{ms / 1000:.0f} s, got {got}")
        more = self.event(0)
        if more:
            raise Failure(f"{self.side}: the event {more} after {event}, none was expected")

    def state(self, qp):
        return STATE[self.do("state", qp=qp)["state"]]

    def sum(self, mr, **keys):
        return self.do("sum", mr=mr, **keys)["sum"]


class Pair:
    """A peer at each end and queue pairs between them. `requester` is uroce's in the role of a
    client. The programs end with the with statement."""

    def __init__(self, wire, role, family=0):
        sgid = 1 + family
        self.wire = wire
        self.ours = self.theirs = None
        try:
            self.ours = Peer(wire, "ours", sgid)
            self.theirs = Peer(wire, "theirs", sgid)
        except Failure:
            self.__exit__()
            raise
        self.requester, self.responder = (
            (self.ours, self.theirs) if role == "client" else (self.theirs, self.ours))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for peer in (self.ours, self.theirs):
            if peer:
                peer.close()

    def connect(self, type="rc", access=ALL, psn=(0, 0), requester=None, responder=None):
        """Connects a new queue pair at each end; returns the numbers of the requester's and of the
        responder's. `requester` and `responder` are dictionaries of more keys for `qp`, `rtr` and
        `rts`."""
        ends = [(self.requester, requester or {}), (self.responder, responder or {})]
        made = [peer.do("qp", type=type, **keep(keys, "send", "recv")) for peer, keys in ends]
        for i, (peer, keys) in enumerate(ends):
            other, theirs = ends[1 - i][0], made[1 - i]
            number = made[i]["qp"]
            peer.do("init", qp=number, access=access if i else ALL)
            peer.do("rtr", qp=number, dqpn=theirs["qpn"], gid=other.device["gid"], sgid=peer.sgid,
                    psn=psn[1 - i], **keep(keys, "mtu", "timer"),
                    **({"rd": keys["dest_rd"]} if "dest_rd" in keys else {}))
        for i, (peer, keys) in enumerate(ends):
            # a guest may be slow: seven times one second
            peer.do("rts", qp=made[i]["qp"], psn=psn[i],
                    **{"timeout": 18, "retry": 7, **keep(keys, "timeout", "retry", "rnr", "rd")})
        return made[0]["qp"], made[1]["qp"]


def keep(keys, *names):
    return {name: value for name, value in keys.items() if name in names}


def until_state(peer, qp, wanted, limit=10):
    wait_until(f"state {wanted} of {peer.side}'s queue pair", limit,
               lambda: peer.state(qp) == wanted, 0.05)


@dataclasses.dataclass
class PeerCase:
    """Calls `function(pair)` with both ends connected."""
    name: str
    function: object
    quick: bool = False
    roles: tuple = ("client", "server")
    family: int = 0

    def run(self, wire, role):
        with Pair(wire, role, self.family) as pair:
            self.function(pair)


def no_less_than(what, value, least):
    if value < least:
        raise Failure(f"{what}: {value}, at least {least} was expected")


def same(what, value, wanted):
    if value != wanted:
        raise Failure(f"{what}: {value}, expected was {wanted}")
