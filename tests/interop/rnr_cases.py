# SPDX-License-Identifier: BSD-3-Clause
"""Receivers without receive requests: waiting, giving up, and the time it takes."""

import functools

from peers import PeerCase, no_less_than, same, until_state
from rig import wait_until

LENGTH = 4096
CODE_25, CODE_26, CODE_30 = 61410, 81920, 327680  # us; rxe takes 61.41 ms for code 25, not 61.44


def regions(pair):
    source = pair.requester.region(LENGTH, seed=1)
    room = pair.responder.region(LENGTH, seed=2)
    return source, room


def request(operation, source, room):
    more = {"raddr": room["addr"], "rkey": room["rkey"]} if operation == "write_imm" else {}
    return {"op": operation, "mr": source["mr"], "len": LENGTH, **more}


def comes_late(operation, pair):
    """Retries without end (7): a refused request succeeds once there is a receive request."""
    source, room = regions(pair)
    qp, theirs = pair.connect(requester={"rnr": 7}, responder={"timer": 14})
    pair.requester.do("send", qp=qp, id=1, times=3, **request(operation, source, room))
    # 1.28 ms per retry: far more than six or seven of them
    same("what completed without a receive request", pair.requester.poll(qp, ms=300), [])
    pair.responder.do("recv", qp=theirs, mr=room["mr"], len=LENGTH, id=1, times=3)
    pair.requester.completes(qp, ["SUCCESS"] * 3)
    pair.responder.completes(theirs, ["SUCCESS"] * 3, "recv")
    same("the message", pair.responder.sum(room["mr"]), pair.requester.sum(source["mr"]))


def gives_up(retries, code, least, pair):
    """Gives up, but not before this many times the time that the receiver asked for."""
    source, room = regions(pair)
    qp, theirs = pair.connect(requester={"rnr": retries}, responder={"timer": code})
    pair.requester.do("send", qp=qp, id=1, times=2, **request("send", source, room))
    first, _ = pair.requester.completes(qp, ["RNR_RETRY_EXC_ERR", "WR_FLUSH_ERR"])
    no_less_than("us until it gave up", first.us, retries * least)
    until_state(pair.requester, qp, "ERR")
    same("the responder's queue pair", pair.responder.state(theirs), "RTS")


def waits(pair):
    """The requester waits as long as the receiver asks for, even if there is room earlier."""
    guest = pair.wire.guest
    counter = "rcvd_rnr_err" if pair.requester is pair.theirs else "send_rnr_err"
    before = guest.counter(counter)
    source, room = regions(pair)
    # a much shorter timeout does not shorten the wait
    qp, theirs = pair.connect(requester={"rnr": 7, "timeout": 12}, responder={"timer": 30})
    pair.requester.do("send", qp=qp, id=1, **request("send", source, room))
    wait_until("the first refusal", 20, lambda: guest.counter(counter) > before)
    pair.responder.do("recv", qp=theirs, mr=room["mr"], len=LENGTH, id=1)
    (done,) = pair.requester.completes(qp, ["SUCCESS"])
    no_less_than("us until it was sent again", done.us, CODE_30)


def read_needs_none(pair):
    """READ, WRITE and atomics use no receive request and never get an RNR NAK."""
    source, room = regions(pair)
    qp, theirs = pair.connect(requester={"rnr": 0})
    for id, (operation, length) in enumerate({"read": 64, "write": 64, "add": 8}.items()):
        pair.requester.do("send", qp=qp, op=operation, mr=source["mr"], len=length,
                          raddr=room["addr"], rkey=room["rkey"], id=id)
    pair.requester.completes(qp, ["SUCCESS"] * 3)


def cases():
    for operation in ("send", "write_imm"):
        yield PeerCase(f"rnr/{operation}-comes-late", functools.partial(comes_late, operation),
                       quick=operation == "send")
    for name, retries, code, least in (("gives-up-at-once", 0, 12, 0),
                                       ("gives-up", 2, 26, CODE_26),
                                       ("code-25", 3, 25, CODE_25)):
        yield PeerCase(f"rnr/{name}", functools.partial(gives_up, retries, code, least),
                       quick=name == "gives-up")
    yield PeerCase("rnr/waits", waits, quick=True)
    yield PeerCase("rnr/others-need-none", read_needs_none)
