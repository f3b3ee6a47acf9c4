/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagram sockets: open, bind, close; completions; sending. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "rdmacm/rsockets/rs_datagram.h"

#define RECEIVED     (1ull << 63)
#define GRH	     sizeof(struct ibv_grh)
#define RECEIVE_SLOT (GRH + LIMIT_RS_DATAGRAM)

/* ---- open and bind ---- */

int rs_datagrams_open(struct rs_socket *s)
{
	struct stat st;

	/* Uses the system call, because socket() of librspreload.so would make an rsocket. */
	s->fd = (int)syscall(SYS_socket, s->domain, SOCK_DGRAM, 0);
	if (s->fd < 0)
		return errno;
	if (fstat(s->fd, &st) == 0) {
		s->datagrams.device = st.st_dev;
		s->datagrams.inode = st.st_ino;
	}
	s->datagrams.end = &s->datagrams.first;
	s->readable = s->writable = true;
	return 0;
}

static int serve(struct rs_socket *s)
{
	int error = s->datagrams.serving ? 0 : rs_service_watch(s->fd, s->fd);

	s->datagrams.serving = error == 0;
	return error;
}

int rs_datagrams_bind(struct rs_socket *s, const struct sockaddr *a, socklen_t length)
{
	int error;

	pthread_mutex_lock(&s->lock);
	error = bind(s->fd, a, length) == 0 ? serve(s) : errno;
	pthread_mutex_unlock(&s->lock);
	return error;
}

static int disconnect_locked(struct rs_socket *s)
{
	int error = rs_udp_disconnect(s);

	if (error == 0)
		s->datagrams.peer = NULL;
	return error;
}

/* The kernel does not know that we have failed. */
static void reconnect(struct rs_socket *s)
{
	const struct rs_destination *peer = s->datagrams.peer;
	const struct sockaddr *a;

	if (peer != NULL) {
		a = (const struct sockaddr *)&peer->address;
		if (connect(s->fd, a, rs_address_length(a)) == 0)
			return;
	}
	disconnect_locked(s);
}

/* The kernel has connected the UDP socket. */
static int take_peer(struct rs_socket *s)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t length = sizeof(peer);
	struct rs_destination *d;
	int error = serve(s);

	/* The kernel's form of the address, in which datagrams name their sender. */
	if (error == 0 && getpeername(s->fd, (struct sockaddr *)&peer, &length) != 0)
		error = errno;
	if (error == 0)
		error = rs_destination_for(s, (struct sockaddr *)&peer, &d);
	if (error == 0)
		s->datagrams.peer = s->datagrams.last = d;
	return error;
}

static int connect_locked(struct rs_socket *s, const struct sockaddr *a, socklen_t length)
{
	int error;

	if (a != NULL && length >= sizeof(a->sa_family) && a->sa_family == AF_UNSPEC)
		return disconnect_locked(s);
	error = rs_check_address(s, a, length);
	if (error != 0)
		return error;
	if (connect(s->fd, a, length) != 0)
		return errno;
	error = take_peer(s);
	if (error != 0)
		reconnect(s);
	return error;
}

int rs_datagrams_connect(struct rs_socket *s, const struct sockaddr *a, socklen_t length)
{
	int error;

	pthread_mutex_lock(&s->lock);
	error = connect_locked(s, a, length);
	pthread_mutex_unlock(&s->lock);
	return error;
}

void rs_datagrams_progress(struct rs_socket *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->closed) {
		rs_udp_progress(s);
		rs_destinations_progress(s);
	}
	pthread_mutex_unlock(&s->lock);
}

static bool all_is_sent(struct rs_socket *s)
{
	for (const struct rs_local *l = s->datagrams.locals; l != NULL; l = l->next)
		if (l->free_count != l->slots)
			return false;
	return true;
}

void rs_datagrams_linger(struct rs_socket *s)
{
	rs_linger(s, all_is_sent, LIMIT_RS_DATAGRAM_LINGER_MS);
}

void rs_datagrams_close(struct rs_socket *s)
{
	struct rs_datagrams *t = &s->datagrams;
	struct rs_local *l;

	rs_destinations_free(s);
	while ((l = t->locals) != NULL) {
		t->locals = l->next;
		rs_local_free(l);
	}
	if (s->completions != NULL)
		ibv_destroy_comp_channel(s->completions);
	rs_inbox_close(s);
	if (s->fd >= 0)
		close(s->fd);
}

/* ---- completions ---- */

void rs_datagrams_arm(struct rs_socket *s)
{
	for (struct rs_local *l = s->datagrams.locals; l != NULL; l = l->next)
		ibv_req_notify_cq(l->cq, 0);
}

/*
 * A queue pair has failed. A program that waits for datagrams might wait for ever. So every call
 * reports the error, once what was received before has been read.
 */
static void break_off(struct rs_socket *s, const struct rs_local *l, int error)
{
	if (s->datagrams.broken != 0)
		return;
	s->error = s->datagrams.broken = uroce_context_gone(l->id->verbs) ? ENODEV : error;
	rs_wake(s);
}

int rs_local_post_receive(struct rs_local *l, uint32_t slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)l->receive.octets + slot * RECEIVE_SLOT,
			       .length = RECEIVE_SLOT,
			       .lkey = l->receive.mr->lkey };
	struct ibv_recv_wr request = { .wr_id = RECEIVED | slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_recv(l->id->qp, &request, &bad);
}

/* If our own address is link-local, its interface is also that of a link-local sender. */
static uint32_t scope_of(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6
		       ? ((const struct sockaddr_in6 *)(const void *)a)->sin6_scope_id
		       : 0;
}

/* As with UDP, a connected socket receives from its peer only. */
static bool is_welcome(const struct rs_socket *s, const struct sockaddr_storage *source)
{
	const struct rs_destination *peer = s->datagrams.peer;

	return peer == NULL || rs_same_address(&peer->address, source);
}

/*
 * Looks at one destination only, because a socket may have thousands. Others are asked more
 * often.
 */
static void hear(struct rs_socket *s, const struct sockaddr_storage *source, uint32_t qpn)
{
	struct rs_destination *d = s->datagrams.last;

	if (d != NULL && d->qpn == qpn && rs_same_address(&d->address, source))
		rs_destination_heard(d);
}

static void take_received(struct rs_socket *s, struct rs_local *l, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;
	const uint8_t *octets = l->receive.octets + slot * RECEIVE_SLOT + GRH;
	struct sockaddr_storage source;
	size_t length, header;
	int error;

	if (wc->status != IBV_WC_SUCCESS) {
		break_off(s, l, EIO);
		return;
	}
	length = wc->byte_len > GRH ? wc->byte_len - GRH : 0;
	header = rs_datagram_load(&source, octets, length, scope_of(&l->address));
	if (header > 0)
		hear(s, &source, wc->src_qp);
	if (header > 0 && is_welcome(s, &source))
		rs_deliver(s, &source, octets + header, length - header);
	error = rs_local_post_receive(l, slot);
	if (error != 0)
		break_off(s, l, error); /* each request that cannot be posted leaves one fewer */
}

static void take_sent(struct rs_socket *s, struct rs_local *l, const struct ibv_wc *wc)
{
	uint16_t slot = (uint16_t)wc->wr_id;

	l->sent_to[slot]->uses--;
	l->free_slots[l->free_count++] = slot;
	if (wc->status != IBV_WC_SUCCESS)
		break_off(s, l, EIO); /* later requests are flushed, too */
}

static bool process_local(struct rs_socket *s, struct rs_local *l)
{
	uint32_t budget = s->sizes.receive_queue + s->sizes.send_queue;
	struct ibv_wc wc;
	bool changed = false;

	for (uint32_t i = 0; i < budget && ibv_poll_cq(l->cq, 1, &wc) > 0; i++) {
		changed = true;
		if (wc.wr_id & RECEIVED)
			take_received(s, l, &wc);
		else
			take_sent(s, l, &wc);
	}
	return changed;
}

void rs_datagrams_process(struct rs_socket *s)
{
	bool changed = false;

	for (struct rs_local *l = s->datagrams.locals; l != NULL; l = l->next)
		changed |= process_local(s, l);
	if (changed)
		rs_wake(s);
}

bool rs_datagram_may_go(struct rs_socket *s)
{
	const struct rs_destination *d = s->datagrams.last;

	return d == NULL || d->local->free_count > 0 || !s->writable || s->datagrams.broken != 0;
}

/* ---- sending ---- */

static int post(struct rs_destination *d, const uint8_t *octets, size_t length)
{
	struct rs_local *l = d->local;
	uint16_t slot = l->free_slots[l->free_count - 1];
	uint8_t *place = l->send.octets + (size_t)slot * LIMIT_RS_DATAGRAM;
	struct ibv_sge sge = { .addr = (uintptr_t)place,
			       .length = (uint32_t)(l->header_length + length),
			       .lkey = l->send.mr->lkey };
	struct ibv_send_wr request = {
		.wr_id = slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = d->ah, .remote_qpn = d->qpn, .remote_qkey = RDMA_UDP_QKEY }
	};
	struct ibv_send_wr *bad;
	int error;

	memcpy(place, l->header, l->header_length);
	memcpy(place + l->header_length, octets, length);
	error = ibv_post_send(l->id->qp, &request, &bad);
	if (error != 0)
		return uroce_context_gone(l->id->verbs) ? ENODEV : error;
	l->free_count--;
	l->sent_to[slot] = d;
	d->uses++;
	return 0;
}

/*
 * Waits for room. The destination is held meanwhile, because rconnect() in another thread may name
 * another one.
 */
static int await_room(struct rs_socket *s, struct rs_destination *d, int flags)
{
	int error = 0;

	d->uses++;
	do {
		s->datagrams.last = d;
		if (!rs_datagram_may_go(s))
			error = rs_wait(s, rs_datagram_may_go, rs_must_not_wait(s, flags));
	} while (error == 0 && s->writable && s->datagrams.broken == 0 &&
		 d->local->free_count == 0);
	d->uses--;
	if (error != 0)
		return error;
	if (s->datagrams.broken != 0)
		return s->datagrams.broken;
	return s->writable ? 0 : s->closed ? EBADF : EPIPE;
}

/* A datagram larger than a packet goes over UDP, and the kernel fragments it. */
static int send_one(struct rs_socket *s, struct rs_destination *d, const uint8_t *octets,
		    size_t length, int flags)
{
	int error;

	if (length + d->local->header_length > LIMIT_RS_DATAGRAM)
		return EMSGSIZE;
	error = await_room(s, d, flags);
	if (error != 0)
		return error;
	if (d->ah == NULL || length + d->local->header_length > d->local->longest ||
	    rs_destination_must_answer(d))
		return rs_udp_send(s, d, RS_UDP_DATA, octets, length, rs_must_not_wait(s, flags));
	return post(d, octets, length);
}

static int send_locked(struct rs_socket *s, const struct sockaddr *to, const uint8_t *octets,
		       size_t length, int flags)
{
	struct rs_destination *d = s->datagrams.peer;
	int error = s->datagrams.broken == 0 ? rs_take_error(s) : 0;

	if (error == 0)
		error = serve(s);
	if (error == 0 && to != NULL)
		error = rs_destination_for(s, to, &d);
	if (error == 0 && d == NULL)
		error = EDESTADDRREQ;
	return error != 0 ? error : send_one(s, d, octets, length, flags);
}

ssize_t rs_datagram_send(struct rs_socket *s, const struct iovec *iov, size_t count, int flags,
			 const struct sockaddr *to, socklen_t to_length)
{
	struct rs_cursor c = { .iov = iov, .count = (int)count };
	ssize_t length = rs_iov_length(iov, count);
	uint8_t octets[LIMIT_RS_DATAGRAM];
	int error = to != NULL ? rs_check_address(s, to, to_length) : 0;

	if (length < 0)
		return result(EINVAL);
	if (flags & MSG_OOB)
		return result(EOPNOTSUPP);
	if (length > LIMIT_RS_DATAGRAM)
		return result(EMSGSIZE);
	if (error != 0)
		return result(error);
	rs_copy_from(&c, octets, (size_t)length);
	rs_direction_begin(&s->send_lock);
	pthread_mutex_lock(&s->lock);
	error = send_locked(s, to, octets, (size_t)length, flags);
	pthread_mutex_unlock(&s->lock);
	rs_direction_end();
	return error != 0 ? result(error) : length;
}
