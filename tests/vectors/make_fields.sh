#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_fields.sh FILE.pcap > FILE.tsv: the header fields of every RoCE frame as tshark reads them,
# in the columns of fields.c. rxe_sample.tsv was made with this and tshark 4.0.17.
set -eu
exec tshark -r "$1" -Y 'infiniband' -T fields -E header=y -E occurrence=f \
	-e frame.number -e udp.srcport \
	-e infiniband.bth.opcode -e infiniband.bth.se -e infiniband.bth.m -e infiniband.bth.padcnt \
	-e infiniband.bth.p_key -e infiniband.bth.destqp -e infiniband.bth.a -e infiniband.bth.psn \
	-e infiniband.deth.q_key -e infiniband.deth.srcqp \
	-e infiniband.reth.va -e infiniband.reth.r_key -e infiniband.reth.dmalen \
	-e infiniband.atomiceth.swapdt -e infiniband.atomiceth.cmpdt \
	-e infiniband.aeth.syndrome -e infiniband.aeth.msn \
	-e infiniband.atomicacketh.origremdt -e infiniband.immdt -e infiniband.ieth
