/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets are made, bound, connected, closed. */
#include <netinet/in.h>
#include <stdlib.h>

#include "rdmacm/rsockets/rs.h"

/* ---- beginning and end ---- */

struct rs_socket *rs_new(int domain, int type)
{
	struct rs_socket *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->fd = s->alive = -1;
	s->domain = domain;
	s->type = type;
	s->references = 1;
	s->sizes = rs_defaults()->sizes;
	s->options.keep_idle = 7200;
	pthread_mutex_init(&s->send_lock, NULL);
	pthread_mutex_init(&s->receive_lock, NULL);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void free_stream(struct rs_socket *s)
{
	struct rs_stream *t = &s->stream;

	rs_endpoint_close(s);
	if (t->id != NULL)
		rdma_destroy_id(t->id);
	if (t->channel != NULL)
		rdma_destroy_event_channel(t->channel);
}

void rs_free(struct rs_socket *s)
{
	if (rs_is_stream(s))
		free_stream(s);
	else
		rs_datagrams_close(s);
	pthread_mutex_destroy(&s->send_lock);
	pthread_mutex_destroy(&s->receive_lock);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int open_stream(struct rs_socket *s)
{
	struct rs_stream *t = &s->stream;
	struct id *id;
	int error;

	t->channel = rdma_create_event_channel();
	if (t->channel == NULL)
		return errno;
	s->fd = t->channel->fd;
	if (fcntl(s->fd, F_SETFL, O_NONBLOCK) != 0)
		return errno;
	error = id_create(t->channel, s, RDMA_PS_TCP, IBV_QPT_RC, &id);
	if (error == 0)
		t->id = &id->rdma;
	return error;
}

/*
 * Refuses SOCK_NONBLOCK and SOCK_CLOEXEC, as rdma-core 44 does. Its librspreload.so leaves programs
 * that use these flags on TCP, and must do so, because it does not know accept4().
 */
static int check_kind(int domain, int type, int protocol)
{
	if (domain != AF_INET && domain != AF_INET6)
		return EAFNOSUPPORT;
	if (type != SOCK_STREAM && type != SOCK_DGRAM)
		return ESOCKTNOSUPPORT;
	if (protocol != 0 && protocol != (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return EPROTONOSUPPORT;
	return 0;
}

EXPORT int rsocket(int domain, int type, int protocol)
{
	struct rs_socket *s;
	int error = check_kind(domain, type, protocol);

	if (error != 0)
		return result(error);
	s = rs_new(domain, type);
	if (s == NULL)
		return result(ENOMEM);
	error = rs_is_stream(s) ? open_stream(s) : rs_datagrams_open(s);
	if (error == 0)
		error = rs_enter(s);
	if (error != 0) {
		rs_put(s);
		return result(error);
	}
	return s->fd;
}

void rs_finish(struct rs_socket *s)
{
	bool was_listening;

	rs_service_unwatch(s->fd);
	pthread_mutex_lock(&s->lock);
	if (rs_is_stream(s) && (!s->options.linger.l_onoff || s->options.linger.l_linger != 0))
		rs_stream_shutdown(s, SHUT_RDWR);
	if (!rs_is_stream(s))
		rs_datagrams_linger(s);
	/* Its state does not say so if its engine is gone. */
	was_listening = rs_is_stream(s) && s->stream.ready_end != NULL;
	s->closed = true;
	s->readable = s->writable = false;
	s->state = RS_DISCONNECTED;
	rs_keepalive_end(s);
	rs_wake(s);
	pthread_mutex_unlock(&s->lock);
	if (was_listening)
		rs_listener_close(s);
	rs_put(s);
}

EXPORT int rclose(int socket)
{
	struct rs_socket *s = rs_leave(socket);

	if (s == NULL)
		return -1;
	rs_finish(s);
	return 0;
}

/* ---- addresses ---- */

socklen_t rs_address_length(const struct sockaddr *a)
{
	return a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int rs_check_address(const struct rs_socket *s, const struct sockaddr *a, socklen_t length)
{
	if (a == NULL)
		return EFAULT;
	if (length < sizeof(a->sa_family))
		return EINVAL;
	if (a->sa_family != AF_INET && a->sa_family != AF_INET6)
		return EAFNOSUPPORT;
	if (a->sa_family != s->domain)
		return EAFNOSUPPORT;
	return length < rs_address_length(a) ? EINVAL : 0;
}

void rs_copy_address(const struct sockaddr_storage *from, struct sockaddr *to, socklen_t *length)
{
	socklen_t whole = rs_address_length((const struct sockaddr *)from);

	if (*length > 0)
		memcpy(to, from, MIN_OF(*length, whole));
	*length = whole;
}

static int bind_stream(struct rs_socket *s, const struct sockaddr *a)
{
	if (s->state != RS_NEW)
		return EINVAL;
	if (rdma_bind_addr(s->stream.id, (struct sockaddr *)a) != 0) {
		/*
		 * For an address that is not local, rdma_cm's errno differs from that of sockets.
		 */
		if (errno == ENODEV && !uroce_context_gone(id_of(s->stream.id)->device->context))
			errno = EADDRNOTAVAIL;
		return errno;
	}
	s->state = RS_BOUND;
	return 0;
}

EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs_socket *s = rs_get(socket);
	int error;

	if (s == NULL)
		return -1;
	error = rs_check_address(s, addr, addrlen);
	if (error == 0 && !rs_is_stream(s)) {
		error = rs_datagrams_bind(s, addr, addrlen);
	} else if (error == 0) {
		pthread_mutex_lock(&s->lock);
		error = bind_stream(s, addr);
		pthread_mutex_unlock(&s->lock);
	}
	rs_put(s);
	return result(error);
}

static int connect_stream(struct rs_socket *s, const struct sockaddr *a)
{
	bool is_first;
	int error = 0;

	pthread_mutex_lock(&s->lock);
	is_first = s->state == RS_NEW || s->state == RS_BOUND;
	if (is_first)
		error = rs_service_watch(s->fd, s->fd);
	if (error == 0)
		error = rs_stream_connect(s, a);
	if (is_first && s->state <= RS_BOUND)
		rs_service_unwatch(s->fd);
	pthread_mutex_unlock(&s->lock);
	return error;
}

EXPORT int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs_socket *s = rs_get(socket);
	int error;

	if (s == NULL)
		return -1;
	if (addr != NULL && addr->sa_family == AF_UNSPEC && rs_is_stream(s))
		error = EAFNOSUPPORT;
	else if (!rs_is_stream(s))
		error = rs_datagrams_connect(s, addr, addrlen);
	else
		error = rs_check_address(s, addr, addrlen);
	if (error == 0 && rs_is_stream(s))
		error = connect_stream(s, addr);
	rs_put(s);
	return result(error);
}

/* ---- names ---- */

/* Like getsockname(2), which reports the family of a socket without an address. */
static void copy_own_address(const struct rs_socket *s, struct sockaddr *to, socklen_t *length)
{
	struct sockaddr_storage a = s->stream.id->route.addr.src_storage;

	if (a.ss_family == 0)
		a.ss_family = (sa_family_t)s->domain;
	rs_copy_address(&a, to, length);
}

EXPORT int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs_socket *s = rs_get(socket);
	int error = 0;

	if (s == NULL)
		return -1;
	if (addrlen == NULL || (addr == NULL && *addrlen != 0))
		error = EFAULT;
	else if (!rs_is_stream(s))
		error = getsockname(s->fd, addr, addrlen) == 0 ? 0 : errno;
	else
		copy_own_address(s, addr, addrlen);
	rs_put(s);
	return result(error);
}

EXPORT int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs_socket *s = rs_get(socket);
	int error = 0;

	if (s == NULL)
		return -1;
	if (addrlen == NULL || (addr == NULL && *addrlen != 0))
		error = EFAULT;
	else if (!rs_is_stream(s))
		error = getpeername(s->fd, addr, addrlen) == 0 ? 0 : errno;
	else if (s->state < RS_CONNECTED || s->state == RS_REFUSED)
		error = ENOTCONN;
	else
		rs_copy_address(&s->stream.id->route.addr.dst_storage, addr, addrlen);
	rs_put(s);
	return result(error);
}
