# SPDX-License-Identifier: BSD-3-Clause
"""Requests that the responder must refuse, and errors that the requester must report, with uroce in
both roles."""

import functools

from peers import (ALL, LOCAL_WRITE, REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE, PeerCase, same,
                   until_state)

LENGTH = 4096
NEEDS = {"write": REMOTE_WRITE, "read": REMOTE_READ, "add": REMOTE_ATOMIC}


def octets(operation):
    return 8 if operation == "add" else 64


def wrong_key(pair, operation):
    mr = pair.responder.region(LENGTH, seed=1)
    return {**mr, "rkey": mr["rkey"] ^ 0xff}, ALL


def strange_key(pair, operation):
    """A key that was never valid."""
    mr = pair.responder.region(LENGTH, seed=1)
    return {**mr, "rkey": 0x00fedc00}, ALL


def no_permission(pair, operation):
    return pair.responder.region(LENGTH, ALL & ~NEEDS[operation], seed=1), ALL


def behind_the_end(pair, operation):
    mr = pair.responder.region(LENGTH, seed=1)
    past = LENGTH if operation == "add" else LENGTH - octets(operation) + 1
    return {**mr, "addr": mr["addr"] + past}, ALL


def before_the_beginning(pair, operation):
    mr = pair.responder.region(LENGTH, seed=1)
    return {**mr, "addr": mr["addr"] - (8 if operation == "add" else 1)}, ALL


def not_on_this_qp(pair, operation):
    return pair.responder.region(LENGTH, seed=1), ALL & ~NEEDS[operation]


# The event that a responder's program gets if no receive request fails, ibv_get_async_event(3).
# This is checked only for uroce, not for rxe.
EVENT = {"REM_ACCESS_ERR": "QP_ACCESS_ERR", "REM_INV_REQ_ERR": "QP_REQ_ERR"}


def our_event(pair, qp, theirs, event):
    """Once both ends are in error. The requester has a completion, and gets no event."""
    if pair.responder is pair.ours:
        pair.ours.raises(theirs, event)
    else:
        pair.ours.raises(qp, None)


def refused(operation, fault, status, pair):
    """The request fails, later ones are flushed, both ends are in error, and nothing is written."""
    target, access = fault(pair, operation)
    before = pair.responder.sum(target["mr"])
    source = pair.requester.region(LENGTH, LOCAL_WRITE, seed=9)
    mine = pair.requester.sum(source["mr"])
    qp, theirs = pair.connect(access=access)
    pair.requester.do("send", qp=qp, op=operation, mr=source["mr"], len=octets(operation),
                      raddr=target["addr"], rkey=target["rkey"], id=1, times=2)
    pair.requester.completes(qp, [status, "WR_FLUSH_ERR"])
    until_state(pair.requester, qp, "ERR")
    until_state(pair.responder, theirs, "ERR")
    our_event(pair, qp, theirs, EVENT[status])
    same("the responder's memory", pair.responder.sum(target["mr"]), before)
    same("the requester's memory", pair.requester.sum(source["mr"]), mine)


def allowed(operation, pair):
    """The same without the fault, to show that the others fail because of it."""
    target = pair.responder.region(LENGTH, NEEDS[operation] | LOCAL_WRITE, seed=1)
    source = pair.requester.region(LENGTH, LOCAL_WRITE, seed=9)
    qp, theirs = pair.connect(access=NEEDS[operation])
    pair.requester.do("send", qp=qp, op=operation, mr=source["mr"], len=octets(operation),
                      raddr=target["addr"] + LENGTH - octets(operation), rkey=target["rkey"],
                      id=1, times=2)
    pair.requester.completes(qp, ["SUCCESS"] * 2)
    same("the responder's queue pair", pair.responder.state(theirs), "RTS")
    our_event(pair, qp, theirs, None)


def too_long(pair):
    """A SEND into a receive request that is too small: an error at both ends."""
    source = pair.requester.region(LENGTH, seed=1)
    room = pair.responder.region(LENGTH, seed=2)
    qp, theirs = pair.connect()
    pair.responder.do("recv", qp=theirs, mr=room["mr"], len=100, id=7, times=2)
    pair.requester.do("send", qp=qp, op="send", mr=source["mr"], len=200, id=1, times=2)
    # protocol-map 72, 77: rxe reports it as an error of its own request
    if pair.responder is pair.ours:
        answer, local = "REM_INV_REQ_ERR", "LOC_LEN_ERR"
    else:
        answer, local = "REM_OP_ERR", "LOC_QP_OP_ERR"
    pair.requester.completes(qp, [answer, "WR_FLUSH_ERR"])
    pair.responder.completes(theirs, [local, "WR_FLUSH_ERR"], "recv")
    until_state(pair.requester, qp, "ERR")
    until_state(pair.responder, theirs, "ERR")
    our_event(pair, qp, theirs, None)  # the program has the receive request's error


def misaligned(pair):
    target = pair.responder.region(LENGTH, seed=1)
    source = pair.requester.region(LENGTH, seed=9)
    qp, theirs = pair.connect()
    pair.requester.do("send", qp=qp, op="add", mr=source["mr"], len=8, raddr=target["addr"] + 4,
                      rkey=target["rkey"], id=1)
    pair.requester.completes(qp, ["REM_INV_REQ_ERR"])
    until_state(pair.responder, theirs, "ERR")


FAULTS = {
    "wrong-key": (wrong_key, "REM_ACCESS_ERR"),
    "strange-key": (strange_key, "REM_ACCESS_ERR"),
    "permission": (no_permission, "REM_ACCESS_ERR"),
    "end": (behind_the_end, "REM_ACCESS_ERR"),
    "beginning": (before_the_beginning, "REM_ACCESS_ERR"),
    "queue-pair": (not_on_this_qp, "REM_INV_REQ_ERR"),  # protocol-map 65: both answer like this
}


def cases():
    for operation in NEEDS:
        name = "atomic" if operation == "add" else operation
        yield PeerCase(f"access/{name}-allowed", functools.partial(allowed, operation))
        for fault, (make, status) in FAULTS.items():
            yield PeerCase(f"access/{name}-{fault}",
                           functools.partial(refused, operation, make, status),
                           quick=fault in ("wrong-key", "permission", "end"))
    yield PeerCase("access/send-too-long", too_long)
    # rxe refuses to post it
    yield PeerCase("access/atomic-misaligned", misaligned, roles=("client",))
