/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport: one queue pair as a pure state machine. Events go in, with `now` where the time
 * matters; packets, copies, completions and the next deadline come out. It is called and never
 * calls back; it has no clock, no I/O, no threads, no allocation. One thread at a time (the queue
 * pair's lcore) calls everything about one queue pair.
 *
 *	posted (window slot filled) ---+                +--> qp_next_packet: what to send now
 *	received (decoded packet) -----+                +--> outcome: what to copy, with a ticket
 *	copied / atomic_done (ticket) -+-->  struct qp -+--> qp_take_completion: both queues, in order
 *	gather_failed -----------------+                +--> qp_take_events: asynchronous events
 *	expired (deadline reached) ----+                +--> qp_deadline: when to call qp_expired
 *	sent (unreliable services) ----+
 *	operation_done (windows) ------+
 *	modify, fail ------------------+
 *
 * The caller's loop, after any event: take completions until there are none, take events, ask for
 * the deadline, and let the queue pair have turns while qp_has_packet() says so.
 *
 * Tickets. An outcome that places octets (or asks for an atomic) carries a ticket, counted from 1
 * without gaps. The caller makes the copies and reports qp_copied / qp_atomic_done for each ticket
 * once, in order. Until a ticket is settled the queue pair withholds the acknowledgements, replies
 * and completions at or behind it. A ticket that fails makes the queue pair fail there, as the
 * specification says for a memory fault, and forget what it accepted behind it. At most
 * qp_tickets() may be unsettled. qp_can_receive() is false while a packet could need more than are
 * left, and qp_received refuses it with REASON_BUSY: the caller keeps it, or makes room and asks again.
 *
 * This header has the queue pair as an object. attributes.h has what it is made with, events.h what
 * happens to it, outcomes.h what follows.
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "transport/attributes.h"
#include "transport/events.h"
#include "transport/outcomes.h"

struct path;
struct qp;

/* Octets that qp_init needs, aligned to a cache line. */
size_t qp_memory_size(const struct qp_caps *caps);
/* A queue pair in RESET. The memory is the caller's and stays where it is. */
struct qp *qp_init(void *memory, const struct qp_caps *caps);

/*
 * Records remember a peer's READs and atomics. With caps.records_later their memory is given before
 * the qp_modify that sets max_dest_rd_atomic. qp_records: how many there is room for;
 * qp_records_size: octets for that many (aligned to a cache line); qp_give_records: the memory, for
 * at least as many as before. It returns the memory that was used so far, which is the caller's
 * again; NULL: none.
 */
uint32_t qp_records(const struct qp *qp);
size_t qp_records_size(uint32_t max_dest_rd_atomic);
void *qp_give_records(struct qp *qp, void *memory, uint32_t max_dest_rd_atomic);

/*
 * qp_tickets: how many copies may be unsettled. qp_tickets_size: octets for LIMIT_TICKETS, the most
 * there may be (aligned to a cache line). qp_give_tickets: gives that memory, once; the memory
 * before is no longer used.
 */
uint32_t qp_tickets(const struct qp *qp);
size_t qp_tickets_size(void);
void qp_give_tickets(struct qp *qp, void *memory);

/*
 * A packet to be held (OUTCOME_HOLD) may be so far behind a gap that the queue pair cannot note it.
 * If qp_is_far says so, the caller keeps the packet only after qp_give_far, once, with memory of
 * qp_far_size octets (aligned to 8). qp_take_far returns that memory, or NULL; nothing is held any
 * more.
 */
struct packet;
bool qp_is_far(const struct qp *qp, const struct packet *p);
size_t qp_far_size(void);
void qp_give_far(struct qp *qp, void *memory);
void *qp_take_far(struct qp *qp);

/*
 * The path of its packets (path.h), until another one is given; NULL: none. Queue pairs of the same
 * thread may share it. It may be given at any time, because an address may change.
 */
void qp_give_path(struct qp *qp, struct path *path);

/*
 * Prefetches the memory that the caller touches when it passes something in, or asks for packets,
 * in about a microsecond. There is no other effect. qp_ahead does not read the queue pair itself.
 */
void qp_ahead(const struct qp *qp);
/* Prefetches what its next packets are made of. */
void qp_requests_ahead(const struct qp *qp);

/*
 * What the port carries now (caps.port_mtu, caps.max_frame). It changes a queue pair in RESET or
 * INIT; one that is connected keeps the MTU that it has agreed on with its peer, until it is
 * reset.
 */
void qp_port_carries(struct qp *qp, uint32_t port_mtu, uint32_t max_frame);
/*
 * ibv_modify_qp(3). Returns 0, or EINVAL and nothing changed: an illegal transition, a missing
 * required attribute, one that does not belong to the transition, or a value out of range. *why
 * (may be NULL) gets a constant sentence then. Going to ERR or RESET with tickets unsettled is
 * allowed: reports for tickets from before are ignored.
 */
int qp_modify(struct qp *qp, const struct qp_attributes *attributes, uint32_t mask,
	      const char **why);
void qp_query(const struct qp *qp, struct qp_attributes *attributes);
/* The last one that was set; zeros in RESET. qp_modify changes it. */
const struct qp_path *qp_address_vector(const struct qp *qp);
enum qp_state qp_state(const struct qp *qp);
const struct qp_caps *qp_capabilities(const struct qp *qp);

#endif
