/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tag matching SRQs (IBV_SRQT_TM): a list of tagged buffers, in front of the SRQ's receive
 * requests. All queue pairs of such an SRQ live on one lcore, so only that lcore uses the list. The
 * program posts operations that change the list into a ring of their own. The first packet of each
 * SEND begins with a tag matching header (TMH, <infiniband/tm_types.h>), and the lcore searches the
 * list for its tag:
 *
 *	EAGER, tag found	the rest of the message goes into the entry's elements
 *	RNDV, tag found		the message is the address of the data: the engine READs it into the
 *				entry's elements and answers with a FIN, by requests of its own
 *	either, not found	"unexpected": an ordinary receive of the SRQ, header included
 *	anything else		an ordinary receive: NO_TAG
 *
 * Phase. Both sides count unexpected messages. While the program has not handled them all, new
 * entries wait, because one of those messages may be for such an entry.
 *
 * The control path builds the list before the SRQ can be found, and frees it after the SRQ.
 * Everything else is done by the lcore.
 */
#ifndef LCORE_TAG_H
#define LCORE_TAG_H

#include "lcore/srq.h"

enum tag_state {
	TAG_FREE,
	TAG_LISTED,
	TAG_RECEIVING, /* a message for `qp` goes into it */
	TAG_FETCHING, /* its data is read for a rendezvous of `qp` */
};

struct tag_entry {
	uint64_t recv_wr_id;
	uint8_t state; /* enum tag_state */
	uint8_t num_sge;
	struct engine_qp *qp;
	/* of the message to which it was offered last */
	bool rendezvous;
	uint32_t app_context;
	uint64_t tag;
	uint64_t address; /* rendezvous: of the data at the peer */
	uint32_t rkey;
	uint32_t length;
	struct work_sge sge[LIMIT_TAG_SGE];
};

/* The entries with which each message is compared, oldest first. */
struct tag_match {
	uint64_t tag;
	uint64_t mask;
	uint32_t handle; /* the program's name for it */
	uint32_t entry;
	bool waits; /* until the counts of unexpected messages agree */
};

struct tag_list {
	struct tag_entry *entry; /* max_tags of them */
	struct tag_match *match; /* `listed` of max_tags */
	uint32_t *unused; /* indices of entries: max_tags - listed - taken of them */
	uint32_t max_tags, listed, free;
	uint32_t offered; /* index in `match` of the entry that was offered last */
	uint32_t unexpected; /* messages, less those that failed: the program was told so */
	uint32_t handled; /* by the program, as the program says */
	struct ring_side ops; /* struct tag_work */
	/* (control) */
	uint64_t ops_offset;
	size_t ops_octets;
	size_t memory_octets;
};

/*
 * tag.c: messages. tags_offer: the request for a packet that needs a receive. tags_kept: the packet
 * did not take it. tags_taken: the packet took it.
 */
const struct recv_work *tags_offer(struct lcore *l, struct engine_qp *q, const struct packet *p,
				   nanotime now);
void tags_kept(struct lcore *l, struct engine_qp *q, const struct recv_work *offer);
void tags_taken(struct lcore *l, struct engine_qp *q, const struct recv_work *offer);
/*
 * Turns a receive completion of the core into one of tag matching. May post requests of the
 * engine's own.
 */
void tags_received(struct engine_qp *q, struct completion *c, nanotime now);
/*
 * The same for the completion of one of the engine's own requests. False: the program gets no
 * completion.
 */
bool tags_own_done(struct engine_qp *q, struct completion *c);
/* The queue pair was reset or detached: frees the entries that its messages took. */
void tags_forget(struct engine_qp *q);

/* tag_list.c: operations. */
void tags_bell(struct lcore *l, struct client *c, uint32_t number, nanotime now);
void tags_drain(struct lcore *l, struct engine_srq *s, nanotime now);
/* Frees an entry that is not listed any more. */
void tag_release(struct engine_srq *s, struct tag_entry *t);
/* Takes the entry at this index off the list. The caller releases it. */
struct tag_entry *tag_unlist(struct tag_list *list, uint32_t index);
/* A count changed. If the counts agree now, waiting entries become eligible. */
void tags_phase(struct tag_list *list);

#endif
