/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of a RoCEv2 frame on the wire, in network order, and the offsets by which decode and
 * encode access them. Only lib/wire includes this file.
 */
#ifndef WIRE_HEADER_H
#define WIRE_HEADER_H

#include "wire/envelope.h"

/*
 * Ethernet, IEEE 802.3 and 802.1Q
 *	 0  destination MAC (6)
 *	 6  source MAC (6)
 *	12  type (2), or 0x8100: priority(3) DEI(1) VLAN id(12), then the type
 */
#define ETHER_DST	  0
#define ETHER_SRC	  6
#define ETHER_TYPE	  12
#define ETHER_LENGTH	  14
#define VLAN_TAG_LENGTH	  4
#define ETHERTYPE_IPV4	  0x0800
#define ETHERTYPE_IPV6	  0x86dd
#define ETHERTYPE_VLAN	  0x8100
#define ETHERTYPE_SERVICE 0x88a8 /* the outer tag of a stack, 802.1ad */

/*
 * IPv4, RFC 791
 *	 0                   1                   2                   3
 *	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *	+-------+-------+---------------+-------------------------------+
 *	|   4   |  IHL  | DSCP      ECN |          total length         |
 *	+-------+-------+---------------+-----+-------------------------+
 *	|         identification        |0 D M|     fragment offset     |
 *	+---------------+---------------+-----+-------------------------+
 *	|      TTL      |    protocol   |        header checksum        |
 *	+---------------+---------------+-------------------------------+
 *	|                            source                             |
 *	|                          destination                          |
 *	+---------------------------------------------------------------+
 */
#define IPV4_VERSION_IHL    0
#define IPV4_TOS	    1 /* the low two bits are ECN (RFC 3168): */
#define ECN_BITS	    3u
#define ECN_ECT_0	    2u /* the sender understands marks */
#define ECN_CE		    3u /* marked: the packet passed a long queue */
#define IPV4_TOTAL_LENGTH   2
#define IPV4_IDENTIFICATION 4
#define IPV4_FRAGMENT	    6
#define IPV4_TTL	    8
#define IPV4_PROTOCOL	    9
#define IPV4_CHECKSUM	    10
#define IPV4_SRC	    12
#define IPV4_DST	    16
#define IPV4_LENGTH	    20
#define IPV4_DONT_FRAGMENT  0x4000
#define IPV4_IS_FRAGMENT    0x3fff /* more fragments, or an offset */

/*
 * IPv6, RFC 8200
 *	+-------+---------------+---------------------------------------+
 *	|   6   | traffic class |              flow label               |
 *	+-------+---------------+-------+---------------+---------------+
 *	|         payload length        |  next header  |   hop limit   |
 *	+-------------------------------+---------------+---------------+
 *	|                          source (16)                          |
 *	|                       destination (16)                        |
 *	+---------------------------------------------------------------+
 */
#define IPV6_PAYLOAD_LENGTH 4
#define IPV6_NEXT_HEADER    6
#define IPV6_HOP_LIMIT	    7
#define IPV6_SRC	    8
#define IPV6_DST	    24
#define IPV6_LENGTH	    40

#define PROTOCOL_UDP	     17
#define PROTOCOL_HOP_BY_HOP  0
#define PROTOCOL_ROUTING     43
#define PROTOCOL_FRAGMENT    44
#define PROTOCOL_DESTINATION 60

/*
 * UDP, RFC 768
 *	+-------------------------------+-------------------------------+
 *	|          source port          |        destination port       |
 *	+-------------------------------+-------------------------------+
 *	|             length            |            checksum           |
 *	+-------------------------------+-------------------------------+
 */
#define UDP_SRC_PORT 0
#define UDP_DST_PORT 2
#define UDP_SIZE     4
#define UDP_CHECKSUM 6
#define UDP_LENGTH   8

/*
 * BTH, IBTA 9.2
 *	+---------------+-+-+---+-------+-------------------------------+
 *	|     opcode    |S|M|Pad| TVer  |             P_Key             |
 *	+-+-+-----------+-+-+---+-------+-------------------------------+
 *	|F|B|  late   |X|             destination queue pair            |
 *	+-+-+-----------+-----------------------------------------------+
 *	|A|   reserved  |                      PSN                      |
 *	+-+-------------+-----------------------------------------------+
 *
 * IBTA reserves the bits of X and of "late". uroce uses them to say that it knows selective
 * acknowledgements, and how late it is itself (docs/wire-extensions.md). Other implementations send
 * 0 and ignore them.
 */
#define BTH_OPCODE     0
#define BTH_FLAGS      1
#define BTH_SOLICITED  0x80
#define BTH_MIG_REQ    0x40
#define BTH_PAD_SHIFT  4
#define BTH_PAD_MASK   0x30
#define BTH_TVER_MASK  0x0f
#define BTH_PKEY       2
#define BTH_CONGESTION 4
#define BTH_FECN       0x80
#define BTH_BECN       0x40
#define BTH_SELECTIVE  0x01
#define BTH_LATE_SHIFT 1
#define BTH_LATE_MASK  0x3e
#define BTH_DEST_QPN   5
#define BTH_ACK	       8
#define BTH_ACK_REQ    0x80
#define BTH_STEP_MASK  0x7f /* of a selective acknowledgement: packet.selection_step */
#define BTH_PSN	       9

/*
 * The extended headers, in the order in which they follow the BTH (IBTA 9.3, A14.3, A19.4)
 *
 *	XRCETH		reserved(8) SRQN(24)
 *	DETH		Q_Key(32) reserved(8) source queue pair(24)
 *	FETH		reserved(26) selectivity(2) placement type(4)
 *	RETH		virtual address(64) R_Key(32) DMA length(32)
 *	AtomicETH	virtual address(64) R_Key(32) swap or add(64) compare(64)
 *	AETH		syndrome(8) MSN(24)
 *	AtomicAckETH	original remote data(64)
 *	ImmDt		immediate(32), opaque: never swapped
 *	IETH		R_Key(32)
 *	selection	256 bits: PSN + 1 + 64 * step is bit 0 of the first octet (docs/wire-extensions.md)
 */
#define XRCETH_LENGTH	      4
#define DETH_LENGTH	      8
#define FETH_LENGTH	      4
#define RETH_LENGTH	      16
#define ATOMIC_ETH_LENGTH     28
#define AETH_LENGTH	      4
#define ATOMIC_ACK_ETH_LENGTH 8
#define IMM_LENGTH	      4
#define IETH_LENGTH	      4
#define CNP_RESERVED_LENGTH   16
#define SELECTION_LENGTH      (SELECTION_BITS / 8)

#endif
