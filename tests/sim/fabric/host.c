/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "beside.h"
#include "connects.h"
#include "host.h"
#include "sim/extent.h"
#include "transfer.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/opcode.h"

static void poll(struct event *event, struct fabric *f);
static void take(struct taker *t, struct fabric *f, struct parcel *p);

void host_init(struct host *h, uint32_t number, uint32_t hosts, const struct host_config *is,
	       size_t octets, uint32_t endpoints, uint64_t seed)
{
	*h = (struct host){ .taker.take = take, .poll.happen = poll, .number = number, .is = *is };
	h->ring_last = &h->ring;
	h->ready_last = &h->ready;
	node_init(&h->node, "host", octets, endpoints, seed);
	h->node.keeps = is->keeps;
	h->node.parks = true;
	memset(h->node.memory, GUARD, octets);
	h->endpoint = calloc(endpoints, sizeof(*h->endpoint));
	h->path = calloc(hosts, sizeof(*h->path));
	h->parking = calloc(hosts, sizeof(*h->parking));
	h->peers = hosts;
	h->deadlines.room = endpoints;
	h->deadlines.node = malloc(endpoints * sizeof(struct heap_node *));
	if (h->endpoint == NULL || h->path == NULL || h->parking == NULL ||
	    h->deadlines.node == NULL)
		abort();
	for (uint32_t i = 0; i < hosts; i++) {
		path_init(&h->path[i]);
		h->path[i].late = &h->late;
		parking_init(&h->parking[i], &h->path[i]);
	}
}

void host_free(struct host *h)
{
	for (uint32_t i = 0; i < h->endpoints; i++)
		endpoint_free(&h->endpoint[i]);
	free(h->endpoint);
	free(h->path);
	free(h->parking);
	free(h->deadlines.node);
	node_free(&h->node);
}

static void take(struct taker *t, struct fabric *f, struct parcel *p)
{
	struct host *h = container_of_type(t, struct host, taker);

	if (h->ring_frames == h->is.receive_ring) {
		h->counts.overflowed++;
		parcel_free(f, p);
		return;
	}
	p->next = NULL;
	*h->ring_last = p;
	h->ring_last = &p->next;
	h->ring_frames++;
	fabric_at(f, &h->poll, h->busy_until);
}

/* After anything that happened to an endpoint. */
static void settle(struct host *h, struct fabric *f, struct endpoint *e)
{
	nanotime deadline;

	if (e->beside != NULL)
		beside_settle(e->beside, f, e);
	else if (e->connects != NULL)
		connects_settle(e->connects, f, e);
	else
		transfer_settle(e->transfer, f, e);
	deadline = endpoint_deadline(e, f->now);
	if (heap_holds(&e->deadline) && e->deadline.at != deadline)
		heap_remove(&h->deadlines, &e->deadline);
	if (!heap_holds(&e->deadline) && deadline != TIME_NEVER)
		heap_put(&h->deadlines, &e->deadline, deadline);
	if (endpoint_is_held(e))
		parking_put(&h->parking[e->peer], e);
	if (!e->ready && endpoint_has_packet(e, f->now)) {
		e->ready = true;
		e->next = NULL;
		*h->ready_last = e;
		h->ready_last = &e->next;
	}
}

void host_touched(struct host *h, struct fabric *f, struct endpoint *e)
{
	settle(h, f, e);
	fabric_at(f, &h->poll, h->busy_until);
}

static void receive_one(struct host *h, struct fabric *f, struct parcel *parcel)
{
	static const struct decode_options options = { .check_icrc = true };
	struct packet p;
	enum reason r = packet_decode(&p, parcel->octets + parcel->start, parcel->length, &options);
	struct endpoint *e;

	if (r == REASON_NONE && p.dest_qpn - ENDPOINT_QPN >= h->endpoints)
		r = REASON_QPN_UNKNOWN;
	if (r != REASON_NONE) {
		h->counts.reasons[r]++;
		return;
	}
	e = &h->endpoint[p.dest_qpn - ENDPOINT_QPN];
	if (e->gone) {
		h->counts.reasons[REASON_QPN_UNKNOWN]++;
		return;
	}
	if (opcode_is(p.opcode, OP_DETH))
		packet_make_grh(parcel->octets + parcel->start, &p);
	h->counts.reasons[endpoint_received(e, &p, f->now)]++;
	settle(h, f, e);
}

static uint32_t receive(struct host *h, struct fabric *f)
{
	uint32_t n = 0;

	for (; n < LIMIT_BURST && h->ring != NULL; n++) {
		struct parcel *p = h->ring;

		h->ring = p->next;
		if (h->ring == NULL)
			h->ring_last = &h->ring;
		h->ring_frames--;
		receive_one(h, f, p);
		parcel_free(f, p);
	}
	h->counts.received += n;
	return n;
}

static void expire(struct host *h, struct fabric *f)
{
	while (heap_next(&h->deadlines) <= f->now) {
		struct endpoint *e =
			container_of_type(heap_first(&h->deadlines), struct endpoint, deadline);

		heap_remove(&h->deadlines, &e->deadline);
		endpoint_expired(e, f->now);
		settle(h, f, e);
	}
}

/*
 * Resumes on each path as many endpoints as have room for whole turns, as an engine does; at least
 * one.
 */
static void resume_parked(struct host *h, struct fabric *f)
{
	for (uint32_t i = 0; i < h->peers; i++) {
		struct parking *p = &h->parking[i];
		uint64_t room = path_room(p->path, f->now), used = 0;
		struct endpoint *e;

		while (p->first != NULL && (used == 0 || used < room) &&
		       endpoint_may_resume(p->first, f->now)) {
			e = parking_take(p);
			used += endpoint_is_held(e) ? (uint64_t)LIMIT_TURN * p->path->packet : 0;
			endpoint_resume(e, f->now);
			settle(h, f, e);
		}
	}
}

/* The time at which a path has room although nothing arrives. */
static nanotime next_room(const struct host *h, nanotime now)
{
	nanotime next = TIME_NEVER;

	for (uint32_t i = 0; i < h->peers; i++)
		if (h->parking[i].first != NULL)
			next = time_earlier(next, endpoint_resumes_at(h->parking[i].first, now));
	return next;
}

static struct parcel *parcel_of(struct fabric *f, struct endpoint *e, struct packet *p)
{
	struct parcel *parcel = parcel_new(f);
	uint8_t headers[PACKET_HEADER_MAX];
	size_t n;

	if (!endpoint_next(e, f->now, p, parcel->octets + FRAME_HEADROOM)) {
		parcel_free(f, parcel);
		return NULL;
	}
	n = packet_encode(headers, &e->envelope, p, e->identification++);
	if (p->payload_length > 0 && p->payload != parcel->octets + FRAME_HEADROOM)
		memcpy(parcel->octets + FRAME_HEADROOM, p->payload, p->payload_length);
	parcel->start = (uint16_t)(FRAME_HEADROOM - n);
	memcpy(parcel->octets + parcel->start, headers, n);
	parcel->length = (uint16_t)packet_seal(parcel->octets + parcel->start, &e->envelope, n,
					       p->payload_length);
	return parcel;
}

/* One turn of the first ready endpoint. */
static uint32_t turn(struct host *h, struct fabric *f)
{
	struct endpoint *e = h->ready;
	uint32_t n = 0;

	h->ready = e->next;
	if (h->ready == NULL)
		h->ready_last = &h->ready;
	e->ready = false;
	h->stage_first = 0;
	h->stage_end = 0;
	for (; n < LIMIT_TURN; n++) {
		struct staged *s = &h->stage[n];

		s->parcel = parcel_of(f, e, &s->packet);
		if (s->parcel == NULL)
			break;
		s->of = e;
		s->made_at = f->now;
		h->stage_end++;
	}
	settle(h, f, e);
	return n;
}

static bool refuses(struct host *h, struct fabric *f)
{
	if (h->refuses_until > f->now)
		return true;
	if (!prng_chance(&f->prng, h->is.refuses))
		return false;
	h->counts.refused++;
	h->refuses_until = f->now + h->is.refuses_for;
	return true;
}

/* False: the port takes no more frames now. */
static bool send_staged(struct host *h, struct fabric *f)
{
	if (h->stage_first == h->stage_end)
		return true;
	if (refuses(h, f))
		return false;
	for (; h->stage_first < h->stage_end; h->stage_first++) {
		struct staged *s = &h->stage[h->stage_first];

		if (h->port.frames >= h->is.send_ring)
			return false;
		h->counts.sent++;
		h->counts.again += s->packet.again;
		h->counts.cnps += s->packet.opcode == OPCODE_CNP;
		if (s->made_at != f->now)
			late_stalled(&h->late, f->now - s->made_at, f->now);
		endpoint_left(s->of, &s->packet, s->made_at, f->now);
		settle(h, f, s->of);
		line_put(&h->port, f, s->parcel);
	}
	return true;
}

static uint32_t send(struct host *h, struct fabric *f)
{
	uint32_t n = 0;

	while (send_staged(h, f) && n < LIMIT_ROUND && h->ready != NULL)
		n += turn(h, f);
	return n;
}

/* The time at which the host has something to do again, as far as is known now. */
static nanotime next_poll(const struct host *h, nanotime now)
{
	nanotime t = time_earlier(heap_next(&h->deadlines), next_room(h, now));

	if (h->ring_frames > 0)
		return h->busy_until;
	if (h->stage_first < h->stage_end)
		return time_earlier(t, MAX_OF(h->refuses_until, h->busy_until));
	return h->ready != NULL ? h->busy_until : t;
}

static void poll(struct event *event, struct fabric *f)
{
	struct host *h = container_of_type(event, struct host, poll);
	uint32_t work;
	bool full;

	if (f->now < h->busy_until) {
		fabric_at(f, &h->poll, h->busy_until);
		return;
	}
	work = receive(h, f);
	expire(h, f);
	resume_parked(h, f);
	work += send(h, f);
	h->busy_until = f->now + h->is.poll_time + work * h->is.packet_time;
	if (work > 0)
		late_polled(&h->late, h->busy_until - f->now, true, f->now);
	/* a full port tells when it has room */
	full = h->stage_first < h->stage_end && h->refuses_until <= f->now;
	h->port.room_made = full ? &h->poll : NULL;
	if (full && h->ring_frames == 0)
		fabric_at(f, &h->poll, MAX_OF(heap_next(&h->deadlines), h->busy_until));
	else
		fabric_at(f, &h->poll, MAX_OF(next_poll(h, f->now), h->busy_until));
	if (h->node.fault[0] != '\0')
		fabric_wrong(f, "host %u: %s", h->number, h->node.fault);
}
