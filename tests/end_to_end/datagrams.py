#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sends a datagram every 10 ms to an IPv4 address through one address handle, until it is killed.
"""

import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

OCTETS = 64

ctx = Context(name="uroce0")
pd = PD(ctx)
cq = CQ(ctx, 16)
qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_UD, scq=cq, rcq=cq, cap=QPCap(max_send_wr=8)),
        QPAttr(port_num=1))
mr = MR(pd, OCTETS, e.IBV_ACCESS_LOCAL_WRITE)
address = "".join(f"{int(octet):02x}" for octet in sys.argv[1].split("."))
gid = GID(f"0000:0000:0000:0000:0000:ffff:{address[:4]}:{address[4:]}")
route = GlobalRoute(dgid=gid, sgid_index=1)
ah = AH(pd, attr=AHAttr(gr=route, is_global=1, port_num=1))
print("resolved", flush=True)
while True:
    wr = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(mr.buf, OCTETS, mr.lkey)])
    wr.set_wr_ud(ah, 0x123456, 0x1234)
    qp.post_send(wr)
    while True:
        n, completions = cq.poll(1)
        if n:
            break
    if completions[0].status != e.IBV_WC_SUCCESS:
        sys.exit(f"status {completions[0].status}")
    time.sleep(0.01)
