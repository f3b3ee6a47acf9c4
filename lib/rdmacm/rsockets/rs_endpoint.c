/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a stream: a queue pair, its memory, and the greeting that describes them. */
#include <stdlib.h>

#include "config/limits.h"
#include "rdmacm/rsockets/rs.h"

int rs_memory_open(struct rs_memory *m, struct ibv_pd *pd, size_t size, int access)
{
	size_t whole = round_up(size, (size_t)sysconf(_SC_PAGESIZE));

	m->octets = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), whole);
	if (m->octets == NULL)
		return ENOMEM;
	memset(m->octets, 0, whole);
	m->size = size;
	m->mr = ibv_reg_mr(pd, m->octets, size, access);
	return m->mr != NULL ? 0 : errno;
}

void rs_memory_close(struct rs_memory *m)
{
	/* Keeps memory into which the queue pair may still write. */
	if (m->mr == NULL || ibv_dereg_mr(m->mr) == 0)
		free(m->octets);
	*m = (struct rs_memory){ 0 };
}

int rs_open_completions(struct rs_socket *s, struct ibv_context *context)
{
	s->completions = ibv_create_comp_channel(context);
	if (s->completions == NULL)
		return errno;
	return fcntl(s->completions->fd, F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
}

static int open_queue_pair(struct rs_socket *s)
{
	struct rdma_cm_id *id = s->stream.id;
	struct rs_sizes *sizes = &s->sizes;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = sizes->send_queue,
			 .max_recv_wr = sizes->receive_queue,
			 .max_send_sge = 2,
			 .max_recv_sge = 1,
			 /* entries of the peer's tables are written inline */
			 .max_inline_data =
				 MAX_OF(sizes->inline_data, (uint32_t)sizeof(struct rs_iomap)) },
	};
	int error = rs_open_completions(s, id->verbs);

	if (error != 0)
		return error;
	s->cq = ibv_create_cq(id->verbs, sizes->send_queue + sizes->receive_queue, s,
			      s->completions, 0);
	if (s->cq == NULL)
		return errno;
	init.send_cq = init.recv_cq = s->cq;
	return rdma_create_qp(id, NULL, &init) == 0 ? 0 : errno;
}

static int open_memory(struct rs_socket *s)
{
	const int remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct rs_stream *t = &s->stream;
	struct ibv_pd *pd = t->id->pd;
	int error = rs_memory_open(&t->send, pd, s->sizes.send_buffer, IBV_ACCESS_LOCAL_WRITE);

	if (error == 0)
		error = rs_memory_open(&t->receive, pd, s->sizes.receive_buffer, remote);
	if (error == 0)
		error = rs_memory_open(&t->table, pd,
				       RS_SGL_ENTRIES * sizeof(struct rs_sge) +
					       s->sizes.iomap_entries * sizeof(struct rs_iomap),
				       remote);
	if (error != 0)
		return error;
	t->lengths = calloc(s->sizes.receive_queue + 1u, sizeof(t->lengths[0]));
	return t->lengths != NULL ? 0 : ENOMEM;
}

static int post_all_receives(struct rs_socket *s)
{
	struct ibv_recv_wr request = { .wr_id = 1ull << 63 }, *bad;
	int error = 0;

	for (int i = 0; i < s->sizes.receive_queue && error == 0; i++)
		error = ibv_post_recv(s->stream.id->qp, &request, &bad);
	return error;
}

static uint32_t most_requests(struct ibv_context *context)
{
	struct ibv_device_attr attr;

	return ibv_query_device(context, &attr) == 0 ? (uint32_t)attr.max_qp_wr
						     : LIMIT_RS_QUEUE_MIN;
}

int rs_endpoint_open(struct rs_socket *s)
{
	struct rs_stream *t = &s->stream;
	int error;

	rs_sizes_clamp(&s->sizes, most_requests(t->id->verbs));
	s->sizes.inline_data = MIN_OF(s->sizes.inline_data, LIMIT_INLINE);
	error = open_queue_pair(s);
	if (error == 0)
		error = open_memory(s);
	if (error == 0)
		error = post_all_receives(s);
	if (error != 0) {
		rs_endpoint_close(s);
		return error;
	}
	rs_inflow_init(&t->in, s->sizes.receive_buffer / 2,
		       (uint16_t)(s->sizes.receive_queue - RS_CONTROL_RECEIVES), t->lengths);
	rs_outflow_init(&t->out, s->sizes.send_buffer,
			(uint16_t)(s->sizes.send_queue - RS_CONTROL_PLACES), RS_CONTROL_PLACES);
	return 0;
}

void rs_endpoint_close(struct rs_socket *s)
{
	struct rs_stream *t = &s->stream;

	if (t->id != NULL)
		rdma_destroy_qp(t->id);
	if (s->cq != NULL)
		ibv_destroy_cq(s->cq);
	if (s->completions != NULL)
		ibv_destroy_comp_channel(s->completions);
	s->cq = NULL;
	s->completions = NULL;
	s->armed = false;
	rs_free_mappings(s);
	rs_memory_close(&t->send);
	rs_memory_close(&t->receive);
	rs_memory_close(&t->table);
	free(t->lengths);
	t->lengths = NULL;
}

void rs_greet(const struct rs_socket *s, uint8_t greeting[RS_GREETING_SIZE])
{
	const struct rs_stream *t = &s->stream;
	struct rs_greeting g = {
		.big_endian = __BYTE_ORDER == __BIG_ENDIAN,
		.has_iomap = true,
		.credits = t->in.credits,
		.iomap_entries = s->sizes.iomap_entries,
		.table = { .address = (uintptr_t)t->table.octets,
			   .key = t->table.mr->rkey,
			   .length = RS_SGL_ENTRIES },
		.buffer = { .address = (uintptr_t)t->receive.octets,
			    .key = t->receive.mr->rkey,
			    .length = t->in.half },
	};

	rs_greeting_store(greeting, &g);
}

bool rs_take_greeting(struct rs_socket *s, const void *data, size_t length)
{
	struct rs_stream *t = &s->stream;
	struct rs_greeting g;

	if (data == NULL || !rs_greeting_load(&g, data, length))
		return false;
	t->peer_table = g.table;
	t->peer_entry = 1 % g.table.length; /* the greeting stands for entry 0 */
	t->swap = g.big_endian != (__BYTE_ORDER == __BIG_ENDIAN);
	t->peer_iomap = g.table.address + (uint64_t)g.table.length * sizeof(struct rs_sge);
	t->peer_iomap_entries = g.iomap_entries;
	t->target = g.buffer;
	t->target_entry = 1;
	t->out.granted = g.credits;
	return true;
}
