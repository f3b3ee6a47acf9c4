/* SPDX-License-Identifier: BSD-3-Clause */
/* A connected stream: sends messages, handles completions, grants credits. */
#include "rdmacm/rsockets/rs.h"

#define RECEIVED (1ull << 63)

static const struct ibv_recv_wr receive_request = { .wr_id = RECEIVED };

/* ---- state ---- */

static void stop(struct rs_socket *s, enum rs_state state)
{
	s->state = state;
	s->readable = s->writable = false;
	rs_wake(s);
}

void rs_stream_fail(struct rs_socket *s, int error)
{
	if (s->state != RS_CONNECTED)
		return;
	s->error = error;
	stop(s, RS_FAILED);
}

void rs_stream_disconnected(struct rs_socket *s)
{
	if (s->state == RS_CONNECTED)
		stop(s, RS_DISCONNECTED);
}

/* A peer that sends no more still reads, so what is under way must arrive first. */
static void end_if_both_have(struct rs_socket *s)
{
	if (s->stream.end_arrived && s->stream.peer_ended)
		rs_stream_disconnected(s);
}

/* ---- sending ---- */

int rs_stream_write(struct rs_socket *s, const struct rs_write *w)
{
	struct ibv_send_wr request = {
		.wr_id = (uint64_t)w->what << 32 | w->octets,
		.sg_list = (struct ibv_sge *)w->sge,
		.num_sge = w->pieces,
		.opcode = w->has_message ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.send_flags = w->is_inline ? IBV_SEND_INLINE : 0,
		.imm_data = htobe32(w->message),
		.wr.rdma = { .remote_addr = w->address, .rkey = w->key },
	};
	struct ibv_send_wr *bad;
	int error = ibv_post_send(s->stream.id->qp, &request, &bad);

	if (error != 0)
		rs_stream_fail(s, error);
	return error;
}

int rs_stream_post(struct rs_socket *s, uint32_t message, enum rs_posted what)
{
	struct rs_write w = { .has_message = true, .message = message, .what = what };

	s->stream.out.control_places--;
	return rs_stream_write(s, &w);
}

static void publish(struct rs_socket *s, uint32_t message, const struct rs_piece *half)
{
	struct rs_stream *t = &s->stream;
	struct rs_sge entry = {
		.address = (uintptr_t)t->receive.octets + half->offset,
		.key = t->receive.mr->rkey,
		.length = half->length,
	};
	struct rs_write w = {
		.sge = { { .addr = (uintptr_t)&entry, .length = sizeof(entry) } },
		.pieces = 1,
		.address = t->peer_table.address + t->peer_entry * sizeof(entry),
		.key = t->peer_table.key,
		.is_inline = true,
		.has_message = true,
		.message = message,
		.what = RS_POSTED_CONTROL,
	};

	entry = rs_sge_for(&entry, t->swap);
	if (++t->peer_entry >= t->peer_table.length)
		t->peer_entry = 0;
	t->out.control_places--;
	rs_stream_write(s, &w);
}

static void give_credits(struct rs_socket *s)
{
	struct rs_stream *t = &s->stream;
	struct rs_piece half;
	uint32_t message;

	while (s->state == RS_CONNECTED && t->out.control_places > 0 && rs_inflow_owes(&t->in)) {
		message = rs_message(RS_CREDIT, rs_inflow_grant(&t->in, &half));
		if (half.length > 0)
			publish(s, message, &half);
		else
			rs_stream_post(s, message, RS_POSTED_CONTROL);
	}
}

/*
 * The peer publishes a buffer after it has emptied one that we had filled. We read its entry as
 * soon as we have used up the entry before it.
 */
static void next_target(struct rs_socket *s)
{
	struct rs_stream *t = &s->stream;
	volatile struct rs_sge *entry = (volatile struct rs_sge *)(void *)t->table.octets;

	entry += t->target_entry;
	if (t->target.length > 0 || entry->length == 0)
		return;
	t->target.address = entry->address;
	t->target.key = entry->key;
	t->target.length = entry->length;
	entry->length = 0;
	t->target_entry = (t->target_entry + 1) % RS_SGL_ENTRIES;
}

bool rs_may_send(struct rs_socket *s)
{
	if (s->state != RS_CONNECTED || !s->writable)
		return false;
	next_target(s);
	return rs_outflow_may_send(&s->stream.out, s->stream.target.length);
}

bool rs_may_send_or_gone(struct rs_socket *s)
{
	return !s->writable || rs_may_send(s);
}

bool rs_has_data_or_gone(struct rs_socket *s)
{
	return !s->readable || rs_inflow_waits(&s->stream.in);
}

bool rs_all_is_sent(struct rs_socket *s)
{
	const struct rs_outflow *f = &s->stream.out;

	return s->state != RS_CONNECTED || f->places + f->control_places == s->sizes.send_queue;
}

/* ---- receiving ---- */

static void take_control(struct rs_socket *s, uint32_t what)
{
	if (what == RS_DISCONNECT)
		rs_stream_disconnected(s);
	if (what != RS_SHUTDOWN)
		return;
	s->readable = false;
	s->stream.peer_ended = true;
	end_if_both_have(s);
}

static void take_end(struct rs_socket *s, enum rs_posted what)
{
	if (what == RS_POSTED_DISCONNECT)
		rs_stream_disconnected(s);
	if (what != RS_POSTED_SHUTDOWN)
		return;
	s->stream.end_arrived = true;
	end_if_both_have(s);
}

static void take_message(struct rs_socket *s, uint32_t message)
{
	struct rs_stream *t = &s->stream;
	uint32_t value = rs_message_value(message);

	switch (rs_message_kind(message)) {
	case RS_DATA:
		if (!rs_inflow_announce(&t->in, value))
			rs_stream_fail(s, ECONNRESET);
		break;
	case RS_CREDIT:
		t->out.granted = (uint16_t)value;
		break;
	case RS_IOMAP:
		rs_inflow_pass(&t->in); /* the message took a credit */
		break;
	case RS_CONTROL:
		take_control(s, value);
		break;
	default:
		break; /* reserved: ignored */
	}
}

static void take_sent(struct rs_socket *s, const struct ibv_wc *wc)
{
	enum rs_posted what = (enum rs_posted)(wc->wr_id >> 32);

	if (what == RS_POSTED_DATA)
		rs_outflow_done(&s->stream.out, (uint32_t)wc->wr_id);
	else
		s->stream.out.control_places++;
	if (wc->status == IBV_WC_SUCCESS || what == RS_POSTED_DISCONNECT)
		take_end(s, what);
	if (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RNR_RETRY_EXC_ERR)
		rs_stream_fail(s, ETIMEDOUT);
	else if (wc->status != IBV_WC_SUCCESS)
		rs_stream_fail(s, uroce_context_gone(s->stream.id->verbs) ? ENODEV : ECONNRESET);
}

static void post_receives(struct rs_socket *s, int count)
{
	struct ibv_recv_wr request[LIMIT_RS_BATCH], *bad;
	int error;

	for (int i = 0; i < count; i++) {
		request[i] = receive_request;
		request[i].next = i + 1 < count ? &request[i + 1] : NULL;
	}
	error = ibv_post_recv(s->stream.id->qp, request, &bad);
	if (error != 0)
		rs_stream_fail(s, error);
}

static void take_completions(struct rs_socket *s, const struct ibv_wc *wc, int n)
{
	int received = 0;

	for (int i = 0; i < n; i++) {
		if (!(wc[i].wr_id & RECEIVED)) {
			take_sent(s, &wc[i]);
			continue;
		}
		if (wc[i].status != IBV_WC_SUCCESS)
			continue; /* flushed */
		received++;
		if (s->state == RS_CONNECTED && (wc[i].wc_flags & IBV_WC_WITH_IMM))
			take_message(s, be32toh(wc[i].imm_data));
	}
	if (received > 0 && s->state == RS_CONNECTED)
		post_receives(s, received);
}

void rs_stream_process(struct rs_socket *s)
{
	uint32_t budget = s->sizes.send_queue + s->sizes.receive_queue;
	struct ibv_wc wc[LIMIT_RS_BATCH];
	bool changed = false;
	int n;

	for (uint32_t done = 0; done < budget; done += (uint32_t)n) {
		n = ibv_poll_cq(s->cq, LIMIT_RS_BATCH, wc);
		if (n <= 0)
			break;
		take_completions(s, wc, n);
		changed = true;
	}
	give_credits(s);
	if (changed)
		rs_wake(s);
}
