/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pairs of a datagram socket: one for each local address from which it sends. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "rdmacm/rsockets/rs_datagram.h"

#define SLOT	     LIMIT_RS_DATAGRAM
#define RECEIVE_SLOT (sizeof(struct ibv_grh) + LIMIT_RS_DATAGRAM)

/* ---- choosing the address ---- */

static bool is_wildcard(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static void copy_port(struct sockaddr_storage *to, const struct sockaddr_storage *from)
{
	if (to->ss_family == AF_INET)
		((struct sockaddr_in *)to)->sin_port = ((const struct sockaddr_in *)from)->sin_port;
	else
		((struct sockaddr_in6 *)to)->sin6_port =
			((const struct sockaddr_in6 *)from)->sin6_port;
}

static int own_name(int fd, struct sockaddr_storage *a)
{
	socklen_t length = sizeof(*a);

	memset(a, 0, sizeof(*a));
	return getsockname(fd, (struct sockaddr *)a, &length) == 0 ? 0 : errno;
}

/*
 * The address from which the kernel would send. Uses the system call, because socket() of
 * librspreload.so would make an rsocket.
 */
static int source_for(const struct sockaddr *to, struct sockaddr_storage *a)
{
	int fd = (int)syscall(SYS_socket, to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return errno;
	error = connect(fd, to, rs_address_length(to)) == 0 ? own_name(fd, a) : errno;
	close(fd);
	return error;
}

/*
 * Its first datagram gives a UDP socket its port, but the address is stored before that. So a socket
 * without a port takes one now, as sendto(2) would. EAGAIN: there is none left (sendto(2), too).
 */
static int take_port(int fd, struct sockaddr_storage *a)
{
	if (((struct sockaddr_in *)a)->sin_port != 0) /* sin6_port is at the same offset */
		return 0;
	if (bind(fd, (struct sockaddr *)a, rs_address_length((struct sockaddr *)a)) != 0)
		return errno == EADDRINUSE ? EAGAIN : errno;
	return own_name(fd, a);
}

static int choose_address(const struct rs_socket *s, const struct sockaddr *to,
			  struct sockaddr_storage *a)
{
	struct sockaddr_storage bound;
	int error = own_name(s->fd, &bound);

	if (error == 0)
		error = take_port(s->fd, &bound);
	if (error != 0)
		return error;
	*a = bound;
	if (is_wildcard(&bound)) {
		error = source_for(to, a);
		if (error == 0)
			copy_port(a, &bound);
	}
	return error;
}

/* ---- opening ---- */

static int bind_id(struct rs_local *l)
{
	struct sockaddr_storage a = l->address, any_port = { 0 };

	copy_port(&a, &any_port); /* the UDP socket has the port; no peer connects to this id */
	if (rdma_create_id(NULL, &l->id, NULL, RDMA_PS_UDP) != 0 ||
	    rdma_bind_addr(l->id, (struct sockaddr *)&a) != 0)
		return errno;
	return 0;
}

static void clamp_sizes(struct rs_socket *s, struct ibv_context *context)
{
	struct ibv_device_attr attr;
	struct rs_sizes *sizes = &s->sizes;

	sizes->send_queue = (uint16_t)MIN_OF(sizes->send_queue, sizes->send_buffer / SLOT);
	sizes->receive_queue = (uint16_t)MIN_OF(sizes->receive_queue, sizes->receive_buffer / SLOT);
	rs_sizes_clamp(sizes, ibv_query_device(context, &attr) == 0 ? (uint32_t)attr.max_qp_wr
								    : LIMIT_RS_QUEUE_MIN);
}

static int open_queue_pair(struct rs_socket *s, struct rs_local *l)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .sq_sig_all = 1,
					 .cap = { .max_send_wr = s->sizes.send_queue,
						  .max_recv_wr = s->sizes.receive_queue,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };
	int error = 0;

	if (s->completions == NULL)
		error = rs_open_completions(s, l->id->verbs);
	if (error != 0)
		return error;
	l->cq = ibv_create_cq(l->id->verbs, s->sizes.send_queue + s->sizes.receive_queue, l,
			      s->completions, 0);
	if (l->cq == NULL)
		return errno;
	if (s->armed)
		ibv_req_notify_cq(l->cq, 0);
	init.send_cq = init.recv_cq = l->cq;
	return rdma_create_qp(l->id, NULL, &init) == 0 ? 0 : errno;
}

static int open_memory(struct rs_socket *s, struct rs_local *l)
{
	struct ibv_pd *pd = l->id->pd;
	int error;

	l->slots = s->sizes.send_queue;
	l->free_slots = calloc(l->slots, sizeof(l->free_slots[0]));
	l->sent_to = calloc(l->slots, sizeof(l->sent_to[0]));
	if (l->free_slots == NULL || l->sent_to == NULL)
		return ENOMEM;
	for (uint32_t i = 0; i < l->slots; i++)
		l->free_slots[l->free_count++] = (uint16_t)i;
	error = rs_memory_open(&l->send, pd, (size_t)l->slots * SLOT, IBV_ACCESS_LOCAL_WRITE);
	if (error == 0)
		error = rs_memory_open(&l->receive, pd,
				       (size_t)s->sizes.receive_queue * RECEIVE_SLOT,
				       IBV_ACCESS_LOCAL_WRITE);
	return error;
}

static uint32_t longest_of(struct ibv_context *context)
{
	struct ibv_port_attr attr;
	uint32_t packet = ibv_query_port(context, 1, &attr) == 0 ? 128u << attr.active_mtu : 256;

	return MIN_OF(packet, LIMIT_RS_DATAGRAM);
}

static int open_local(struct rs_socket *s, struct rs_local *l)
{
	int error = bind_id(l);

	if (error != 0)
		return error;
	clamp_sizes(s, l->id->verbs);
	l->header_length = rs_datagram_store(l->header, (struct sockaddr *)&l->address);
	l->longest = longest_of(l->id->verbs);
	error = rs_inbox_open(s);
	if (error == 0)
		error = open_queue_pair(s, l);
	if (error == 0)
		error = open_memory(s, l);
	for (uint32_t i = 0; i < s->sizes.receive_queue && error == 0; i++)
		error = rs_local_post_receive(l, i);
	return error;
}

void rs_local_free(struct rs_local *l)
{
	if (l->id != NULL)
		rdma_destroy_qp(l->id);
	if (l->cq != NULL)
		ibv_destroy_cq(l->cq);
	rs_memory_close(&l->send);
	rs_memory_close(&l->receive);
	if (l->id != NULL)
		rdma_destroy_id(l->id);
	free(l->free_slots);
	free(l->sent_to);
	free(l);
}

int rs_local_for(struct rs_socket *s, const struct sockaddr *to, struct rs_local **local)
{
	struct sockaddr_storage address;
	struct rs_local *l;
	int error = choose_address(s, to, &address);

	if (error != 0)
		return error;
	for (l = s->datagrams.locals; l != NULL; l = l->next) {
		if (rs_same_address(&l->address, &address)) {
			*local = l;
			return 0;
		}
	}
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return ENOMEM;
	l->address = address;
	error = open_local(s, l);
	if (error != 0) {
		rs_local_free(l);
		return error;
	}
	l->next = s->datagrams.locals;
	s->datagrams.locals = l;
	*local = l;
	rs_wake(s); /* sleeping threads must now poll one more descriptor */
	return 0;
}
