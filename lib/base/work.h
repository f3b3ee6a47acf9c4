/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests and completions as they pass between an application thread and an lcore: plain
 * structs, the same octets on both sides. The numbers of opcodes, flags, statuses and attribute
 * masks are those of <infiniband/verbs.h> (lib/verbs/abi.c asserts it), so the data path translates
 * nothing. The core does not include that header.
 */
#ifndef BASE_WORK_H
#define BASE_WORK_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* ibv_wr_opcode */
enum work_opcode {
	WORK_RDMA_WRITE = 0,
	WORK_RDMA_WRITE_WITH_IMM = 1,
	WORK_SEND = 2,
	WORK_SEND_WITH_IMM = 3,
	WORK_RDMA_READ = 4,
	WORK_ATOMIC_CMP_AND_SWP = 5,
	WORK_ATOMIC_FETCH_AND_ADD = 6,
	WORK_LOCAL_INV = 7,
	WORK_BIND_MW = 8,
	WORK_SEND_WITH_INV = 9,
	WORK_TSO = 10,
	WORK_FLUSH = 14,
	WORK_ATOMIC_WRITE = 15,
};

/* ibv_send_flags */
enum work_flag {
	WORK_FENCE = 1,
	WORK_SIGNALED = 2,
	WORK_SOLICITED = 4,
	WORK_INLINE = 8,
	WORK_IP_CSUM = 16,
};

/* ibv_wc_status */
enum work_status {
	STATUS_SUCCESS = 0,
	STATUS_LOC_LEN_ERR = 1,
	STATUS_LOC_QP_OP_ERR = 2,
	STATUS_LOC_EEC_OP_ERR = 3,
	STATUS_LOC_PROT_ERR = 4,
	STATUS_WR_FLUSH_ERR = 5,
	STATUS_MW_BIND_ERR = 6,
	STATUS_BAD_RESP_ERR = 7,
	STATUS_LOC_ACCESS_ERR = 8,
	STATUS_REM_INV_REQ_ERR = 9,
	STATUS_REM_ACCESS_ERR = 10,
	STATUS_REM_OP_ERR = 11,
	STATUS_RETRY_EXC_ERR = 12,
	STATUS_RNR_RETRY_EXC_ERR = 13,
	STATUS_REM_ABORT_ERR = 16,
	STATUS_FATAL_ERR = 19,
	STATUS_RESP_TIMEOUT_ERR = 20,
	STATUS_GENERAL_ERR = 21,
	STATUS_TM_ERR = 22,
	STATUS_TM_RNDV_INCOMPLETE = 23,
};

/* ibv_wc_opcode */
enum completion_opcode {
	COMPLETION_SEND = 0,
	COMPLETION_RDMA_WRITE = 1,
	COMPLETION_RDMA_READ = 2,
	COMPLETION_COMP_SWAP = 3,
	COMPLETION_FETCH_ADD = 4,
	COMPLETION_BIND_MW = 5,
	COMPLETION_LOCAL_INV = 6,
	COMPLETION_TSO = 7,
	COMPLETION_FLUSH = 8,
	COMPLETION_ATOMIC_WRITE = 9,
	COMPLETION_RECV = 128,
	COMPLETION_RECV_RDMA_WITH_IMM = 129,
	COMPLETION_TM_ADD = 130,
	COMPLETION_TM_DEL = 131,
	COMPLETION_TM_SYNC = 132,
	COMPLETION_TM_RECV = 133,
	COMPLETION_TM_NO_TAG = 134,
};

/* ibv_wc_flags */
enum completion_flag {
	COMPLETION_GRH = 1,
	COMPLETION_WITH_IMM = 2,
	COMPLETION_IP_CSUM_OK = 4,
	COMPLETION_WITH_INV = 8,
	COMPLETION_TM_SYNC_REQ = 16,
	COMPLETION_TM_MATCH = 32,
	COMPLETION_TM_DATA_VALID = 64,
};

/* The kind of frame that a UD receive took, in `sl` of its completion (IBTA A17.4.5.1). */
enum completion_sl {
	COMPLETION_SL_IPV6 = 1,
	COMPLETION_SL_IPV4 = 2,
	COMPLETION_SL_UDP = 8, /* RoCEv2 */
};

/* ibv_access_flags */
enum access_flag {
	ACCESS_LOCAL_WRITE = 1,
	ACCESS_REMOTE_WRITE = 2,
	ACCESS_REMOTE_READ = 4,
	ACCESS_REMOTE_ATOMIC = 8,
	ACCESS_MW_BIND = 16,
	ACCESS_ZERO_BASED = 32,
	ACCESS_ON_DEMAND = 64,
	ACCESS_HUGETLB = 128,
	ACCESS_FLUSH_GLOBAL = 256,
	ACCESS_FLUSH_PERSISTENT = 512,
	/* hints that may be ignored, such as RELAXED_ORDERING */
	ACCESS_OPTIONAL_RANGE = 0x3ff00000,
};

/* ibv_placement_type of a FLUSH: at least one of these */
enum flush_type {
	FLUSH_GLOBAL = 1,
	FLUSH_PERSISTENT = 2,
};

/* ibv_selectivity_level */
enum flush_level {
	FLUSH_RANGE = 0,
	FLUSH_REGION = 1, /* the whole region; address and length are ignored */
};

/* ibv_sge */
struct work_sge {
	uint64_t addr;
	uint32_t length; /* octets */
	uint32_t lkey;
};

/*
 * One send request. In a ring and in a queue pair's window it is directly followed by num_sge
 * elements or, with WORK_INLINE, by inline_length octets (num_sge is then 0).
 */
struct send_work {
	uint64_t wr_id;
	uint8_t opcode; /* enum work_opcode */
	uint8_t flags; /* enum work_flag */
	uint8_t num_sge; /* 0 .. LIMIT_SGE */
	uint8_t srqn_high; /* XRC: see send_work_srqn() */
	uint32_t imm; /* immediate data in network order, or the key to invalidate */
	uint16_t inline_length; /* octets, 0 .. LIMIT_INLINE */
	uint16_t srqn_low;
	uint32_t rkey; /* BIND_MW: the window's current key */
	uint64_t remote_addr; /* BIND_MW: the first octet of the window */
	union {
		struct { /* atomics */
			uint64_t compare_add;
			uint64_t swap;
		};
		struct { /* UD, and TSO */
			uint32_t ah; /* handle */
			uint32_t remote_qpn;
			uint32_t remote_qkey;
			uint16_t mss; /* TSO: octets of payload in each segment */
			/*
			 * TSO: octets of header of each segment. In the slot, the header follows
			 * the elements.
			 */
			uint16_t tso_header;
		};
		struct { /* BIND_MW; `imm` is the window's new key */
			uint64_t bind_length; /* 0 unbinds a type 1 window */
			uint32_t bind_lkey; /* of the region */
			uint32_t bind_access; /* enum access_flag */
		};
		struct { /* FLUSH */
			uint64_t flush_length;
			uint32_t flush_type; /* enum flush_type */
			uint32_t flush_level; /* enum flush_level */
		};
	};
};

/* XRC: the number of the shared receive queue at the peer, 24 bits. */
static inline uint32_t send_work_srqn(const struct send_work *w)
{
	return (uint32_t)w->srqn_high << 16 | w->srqn_low;
}

static inline void send_work_set_srqn(struct send_work *w, uint32_t srqn)
{
	w->srqn_high = (uint8_t)(srqn >> 16);
	w->srqn_low = (uint16_t)srqn;
}

static_assert(sizeof(struct send_work) == 48, "one cache line holds a request and one element");

static inline struct work_sge *send_work_sge(const struct send_work *w)
{
	return (struct work_sge *)(uintptr_t)(w + 1);
}

static inline uint8_t *send_work_inline(const struct send_work *w)
{
	return (uint8_t *)(uintptr_t)(w + 1);
}

/* One receive request, directly followed by num_sge elements. */
struct recv_work {
	uint64_t wr_id;
	uint32_t num_sge;
	/* Used inside the engine only. The engine ignores what a program writes here. */
	uint16_t mark; /* returned with the completion (qp_received()) */
	uint16_t strip; /* how many octets at the start of the message are not stored */
};

static_assert(sizeof(struct recv_work) == 16, "elements stay aligned");

static inline struct work_sge *recv_work_sge(const struct recv_work *w)
{
	return (struct work_sge *)(uintptr_t)(w + 1);
}

/* ibv_ops_wr_opcode */
enum tag_opcode {
	TAG_ADD = 0,
	TAG_DEL = 1,
	TAG_SYNC = 2,
};

/* ibv_ops_flags */
enum tag_flag {
	TAG_SIGNALED = 1,
	TAG_COUNTED = 2, /* IBV_OPS_TM_SYNC: `unexpected` is valid */
};

/* One operation on the list of a tag matching SRQ, directly followed by num_sge elements (ADD). */
struct tag_work {
	uint64_t wr_id;
	uint64_t recv_wr_id; /* ADD */
	uint64_t tag; /* ADD */
	uint64_t mask; /* ADD */
	uint32_t unexpected; /* messages that the program has handled */
	uint32_t handle; /* of the entry: assigned by ADD, named by DEL */
	uint8_t opcode; /* enum tag_opcode */
	uint8_t flags; /* enum tag_flag */
	uint8_t num_sge; /* 0 .. LIMIT_TAG_SGE */
	uint8_t reserved[5];
};

static_assert(sizeof(struct tag_work) == 48, "elements stay aligned");

static inline struct work_sge *tag_work_sge(const struct tag_work *w)
{
	return (struct work_sge *)(uintptr_t)(w + 1);
}

/*
 * The size of a send queue's slot in octets. A multiple of 64, so that no two requests share a
 * cache line.
 */
static inline uint32_t send_work_stride(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t tail = max_sge * (uint32_t)sizeof(struct work_sge);

	if (max_inline > tail)
		tail = max_inline;
	return ((uint32_t)sizeof(struct send_work) + tail + 63) & ~63u;
}

/* The size of a receive queue's slot in octets. */
static inline uint32_t recv_work_stride(uint32_t max_sge)
{
	return ((uint32_t)sizeof(struct recv_work) + max_sge * (uint32_t)sizeof(struct work_sge) +
		63) &
	       ~63u;
}

/*
 * A value of from_srq. Another one is COMPLETION_OWN (transport/events.h), which programs never
 * see.
 */
#define COMPLETION_UNSIGNALED 3

/*
 * One completion. The first 48 octets are struct ibv_wc. Values for which it has no member are in
 * members that mean nothing on that kind of queue pair:
 *
 *	RAW_PACKET		src_qp: flow tag; slid: the VLAN tag (TCI) that was stripped
 *	tag matching (success)	vendor_err, src_qp: high and low half of the tag
 *				slid, pkey_index: high and low half of the private data
 */
struct completion {
	uint64_t wr_id;
	uint32_t status; /* enum work_status */
	uint32_t opcode; /* enum completion_opcode */
	uint32_t vendor_err; /* enum reason */
	uint32_t byte_len;
	uint32_t imm; /* network order, or the invalidated key */
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t wc_flags; /* enum completion_flag */
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
	uint8_t solicited; /* the peer asked for a solicited event, or this is an error */
	/*
	 * A receive from an SRQ: work_index counts the SRQ's requests. COMPLETION_UNSIGNALED: a
	 * failed send request that had not asked for a completion.
	 */
	uint8_t from_srq;
	uint64_t timestamp; /* ns, engine clock */
	uint32_t qp_handle; /* handle of the queue pair */
	uint32_t work_index; /* number of the request in its queue, from 0, modulo 2^32 */
};

static_assert(sizeof(struct completion) == 64, "a cache line each");

#endif
