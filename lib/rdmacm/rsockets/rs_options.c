/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsetsockopt(), rgetsockopt(), rfcntl(). They know the options of rsocket(7), and others that
 * programs use.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>

#include "rdmacm/rsockets/rs_datagram.h"

/* ---- set ---- */

static int set_on_id(struct rs_socket *s, int name, const void *value, socklen_t length)
{
	if (!rs_is_stream(s))
		return 0; /* the caller sets it on the UDP socket */
	return rdma_set_option(s->stream.id, RDMA_OPTION_ID, name, (void *)value, length) == 0
		       ? 0
		       : errno;
}

/* rsocket(7) doubles the size that a program asks for, as socket(7) does. */
static uint32_t buffer_of(int wanted)
{
	return (uint32_t)MIN_OF(MAX_OF(wanted, (int)LIMIT_RS_LOW_WATER), INT32_MAX / 4) * 2;
}

static int set_reuse_address(struct rs_socket *s, int value)
{
	int error = set_on_id(s, RDMA_OPTION_ID_REUSEADDR, &value, sizeof(value));

	/* rdma_cm refuses what comes too late. A program may set it at any time (socket(7)). */
	if (error == EINVAL && s->state != RS_NEW)
		error = 0;
	if (error == 0)
		s->options.reuse_address = value != 0;
	return error;
}

/* ENOBUFS: setsockopt(3p), for want of resources. */
static int set_keep_alive(struct rs_socket *s, int value)
{
	s->options.keep_alive = value != 0;
	if (rs_keepalive_follow(s) == 0)
		return 0;
	s->options.keep_alive = false;
	return ENOBUFS;
}

static int set_socket(struct rs_socket *s, int name, int value)
{
	switch (name) {
	case SO_REUSEADDR:
		return set_reuse_address(s, value);
	case SO_RCVBUF:
		s->sizes.receive_buffer =
			s->completions == NULL ? buffer_of(value) : s->sizes.receive_buffer;
		return 0;
	case SO_SNDBUF:
		s->sizes.send_buffer =
			s->completions == NULL ? buffer_of(value) : s->sizes.send_buffer;
		return 0;
	case SO_KEEPALIVE:
		return set_keep_alive(s, value);
	case SO_OOBINLINE:
		s->options.oob_inline = value != 0;
		return 0;
	default:
		return rs_is_stream(s) ? ENOPROTOOPT : 0;
	}
}

static int set_tos(struct rs_socket *s, int value)
{
	uint8_t tos = (uint8_t)value;
	int error;

	if (value < 0 || value > 255)
		return EINVAL;
	error = set_on_id(s, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
	if (error != 0 || value == s->options.tos)
		return error;
	s->options.tos = value;
	if (!rs_is_stream(s))
		rs_destinations_resolve_again(s);
	return 0;
}

static int set_tcp(struct rs_socket *s, int name, int value)
{
	switch (name) {
	case TCP_NODELAY:
		s->options.no_delay = value != 0;
		return 0;
	case TCP_KEEPIDLE:
		if (value <= 0)
			return EINVAL;
		s->options.keep_idle = value;
		return rs_keepalive_follow(s);
	case TCP_KEEPCNT:
	case TCP_KEEPINTVL:
	case TCP_MAXSEG:
		return 0; /* the queue pair itself retries, and the path sets the packet size */
	default:
		return ENOPROTOOPT;
	}
}

static int set_v6_only(struct rs_socket *s, int value)
{
	int error = s->domain == AF_INET6
			    ? set_on_id(s, RDMA_OPTION_ID_AFONLY, &value, sizeof(value))
			    : ENOPROTOOPT;

	if (error == 0)
		s->options.v6_only = value != 0;
	return error;
}

static uint16_t queue_of(int wanted)
{
	return (uint16_t)MIN_OF(MAX_OF(wanted, 0), RS_QUEUE_MAX);
}

static int set_rdma(struct rs_socket *s, int name, int value)
{
	if (s->completions != NULL || s->state >= RS_RESOLVING)
		return EINVAL;
	switch (name) {
	case RDMA_SQSIZE:
		s->sizes.send_queue = queue_of(value);
		return 0;
	case RDMA_RQSIZE:
		s->sizes.receive_queue = queue_of(value);
		return 0;
	case RDMA_INLINE:
		s->sizes.inline_data = queue_of(value);
		return 0;
	case RDMA_IOMAPSIZE:
		s->sizes.iomap_entries =
			rs_entries_from_scale(rs_entries_to_scale((uint32_t)MAX_OF(value, 0)));
		return 0;
	default:
		return ENOPROTOOPT; /* also RDMA_ROUTE, because RoCE offers no choice of routes */
	}
}

static int set_number(struct rs_socket *s, int level, int name, int value)
{
	switch (level) {
	case SOL_SOCKET:
		return set_socket(s, name, value);
	case IPPROTO_IP:
		return name == IP_TOS ? set_tos(s, value) : rs_is_stream(s) ? ENOPROTOOPT : 0;
	case IPPROTO_TCP:
		return rs_is_stream(s) ? set_tcp(s, name, value) : 0;
	case IPPROTO_IPV6:
		if (name == IPV6_V6ONLY)
			return set_v6_only(s, value);
		return name == IPV6_TCLASS ? set_tos(s, value) : rs_is_stream(s) ? ENOPROTOOPT : 0;
	case SOL_RDMA:
		return set_rdma(s, name, value);
	default:
		return rs_is_stream(s) ? ENOPROTOOPT : 0;
	}
}

/*
 * Whether an option would change our UDP socket without effect on what the program sees. Such
 * options are refused, as on a stream.
 */
static bool is_of_kernel_only(int level, int name)
{
	switch (level) {
	case SOL_SOCKET:
		return name == SO_RCVTIMEO || name == SO_SNDTIMEO;
	case IPPROTO_IP:
		return name == IP_RECVERR;
	case IPPROTO_IPV6:
		return name == IPV6_RECVERR;
	default:
		return level == IPPROTO_UDP;
	}
}

static int set_any(struct rs_socket *s, int level, int name, const void *value, socklen_t length)
{
	int number;

	if (!rs_is_stream(s) && is_of_kernel_only(level, name))
		return ENOPROTOOPT;
	/* Packet options of a datagram socket are set on its UDP socket, too, which checks them. */
	if (!rs_is_stream(s) && level != SOL_RDMA &&
	    setsockopt(s->fd, level, name, value, length) != 0)
		return errno;
	if (value == NULL)
		return EFAULT;
	if (level == SOL_SOCKET && name == SO_LINGER) {
		if (length < sizeof(s->options.linger))
			return EINVAL;
		memcpy(&s->options.linger, value, sizeof(s->options.linger));
		return 0;
	}
	if (length >= sizeof(number))
		memcpy(&number, value, sizeof(number));
	else if (level == IPPROTO_IP && length > 0)
		number = *(const uint8_t *)value; /* an octet will do (ip(7)) */
	else
		return rs_is_stream(s) || level == SOL_RDMA ? EINVAL : 0;
	return set_number(s, level, name, number);
}

EXPORT int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rs_socket *s = rs_get(socket);
	int error;

	if (s == NULL)
		return -1;
	pthread_mutex_lock(&s->lock);
	error = set_any(s, level, optname, optval, optlen);
	pthread_mutex_unlock(&s->lock);
	rs_put(s);
	return result(error);
}

/* ---- get ---- */

static int get_socket(struct rs_socket *s, int name, int *value)
{
	switch (name) {
	case SO_ERROR:
		*value = rs_take_error(s);
		return 0;
	case SO_REUSEADDR:
		*value = s->options.reuse_address;
		return 0;
	case SO_KEEPALIVE:
		*value = s->options.keep_alive;
		return 0;
	case SO_OOBINLINE:
		*value = s->options.oob_inline;
		return 0;
	case SO_RCVBUF:
		*value = (int)s->sizes.receive_buffer;
		return 0;
	case SO_SNDBUF:
		*value = (int)s->sizes.send_buffer;
		return 0;
	case SO_TYPE:
		*value = s->type;
		return 0;
	case SO_DOMAIN:
		*value = s->domain;
		return 0;
	case SO_ACCEPTCONN:
		*value = s->state == RS_LISTENING;
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

/* The largest message that fits into one packet of the path. */
static int segment(const struct rs_socket *s)
{
	const struct rdma_route *route = &s->stream.id->route;

	return route->num_paths > 0 ? 128 << route->path_rec->mtu : (int)LIMIT_RS_LOW_WATER;
}

static int get_tcp(struct rs_socket *s, int name, int *value)
{
	if (!rs_is_stream(s))
		return EOPNOTSUPP;
	switch (name) {
	case TCP_NODELAY:
		*value = s->options.no_delay;
		return 0;
	case TCP_KEEPIDLE:
		*value = s->options.keep_idle;
		return 0;
	case TCP_KEEPCNT:
	case TCP_KEEPINTVL:
		*value = 1;
		return 0;
	case TCP_MAXSEG:
		*value = segment(s);
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int get_rdma(struct rs_socket *s, int name, int *value)
{
	switch (name) {
	case RDMA_SQSIZE:
		*value = s->sizes.send_queue;
		return 0;
	case RDMA_RQSIZE:
		*value = s->sizes.receive_queue;
		return 0;
	case RDMA_INLINE:
		*value = s->sizes.inline_data;
		return 0;
	case RDMA_IOMAPSIZE:
		*value = s->sizes.iomap_entries;
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int get_number(struct rs_socket *s, int level, int name, int *value)
{
	switch (level) {
	case SOL_SOCKET:
		return get_socket(s, name, value);
	case IPPROTO_IP:
		*value = s->options.tos;
		return name == IP_TOS ? 0 : ENOPROTOOPT;
	case IPPROTO_TCP:
		return get_tcp(s, name, value);
	case IPPROTO_IPV6:
		*value = name == IPV6_V6ONLY ? s->options.v6_only : s->options.tos;
		return name == IPV6_V6ONLY || name == IPV6_TCLASS ? 0 : ENOPROTOOPT;
	case SOL_RDMA:
		return get_rdma(s, name, value);
	default:
		return ENOPROTOOPT;
	}
}

static void give(void *to, socklen_t *length, const void *from, socklen_t whole)
{
	*length = MIN_OF(*length, whole);
	memcpy(to, from, *length);
}

/* Fills in the few members that apply here. */
static void give_info(struct rs_socket *s, void *to, socklen_t *length)
{
	struct tcp_info info = {
		.tcpi_state = s->state == RS_CONNECTED ? TCP_ESTABLISHED : TCP_CLOSE,
		.tcpi_snd_mss = (uint32_t)segment(s),
		.tcpi_rcv_mss = (uint32_t)segment(s),
		.tcpi_snd_cwnd = s->sizes.send_queue,
	};

	give(to, length, &info, sizeof(info));
}

static int get_any(struct rs_socket *s, int level, int name, void *value, socklen_t *length)
{
	int number, error;

	if (value == NULL || length == NULL)
		return EFAULT;
	if (level == SOL_SOCKET && name == SO_LINGER) {
		give(value, length, &s->options.linger, sizeof(s->options.linger));
		return 0;
	}
	if (level == IPPROTO_TCP && name == TCP_INFO && rs_is_stream(s)) {
		give_info(s, value, length);
		return 0;
	}
	error = get_number(s, level, name, &number);
	if (error == 0)
		give(value, length, &number, sizeof(number));
	else if (!rs_is_stream(s) && level != SOL_RDMA)
		return getsockopt(s->fd, level, name, value, length) == 0 ? 0 : errno;
	return error;
}

EXPORT int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rs_socket *s = rs_get(socket);
	int error;

	if (s == NULL)
		return -1;
	pthread_mutex_lock(&s->lock);
	error = get_any(s, level, optname, optval, optlen);
	pthread_mutex_unlock(&s->lock);
	rs_put(s);
	return result(error);
}

/* ---- descriptors ---- */

/*
 * A stream has the descriptor of an event channel, which exec always closes. A datagram socket
 * has one of the kernel, whose port another program would keep.
 */
static int set_descriptor_flags(struct rs_socket *s, int flags)
{
	if (!rs_is_stream(s) && fcntl(s->fd, F_SETFD, flags) != 0)
		return errno;
	s->descriptor_flags = flags;
	return 0;
}

static int control(struct rs_socket *s, int command, int argument, int *value)
{
	*value = 0;
	switch (command) {
	case F_GETFL:
		*value = s->status_flags | O_RDWR;
		return 0;
	case F_SETFL:
		s->status_flags = argument & ~O_ACCMODE;
		return 0;
	case F_GETFD:
		*value = s->descriptor_flags;
		return 0;
	case F_SETFD:
		return set_descriptor_flags(s, argument & FD_CLOEXEC);
	default:
		return EOPNOTSUPP;
	}
}

EXPORT int rfcntl(int socket, int cmd, ...)
{
	struct rs_socket *s = rs_get(socket);
	int error, argument, value;
	va_list list;

	if (s == NULL)
		return -1;
	va_start(list, cmd);
	argument = va_arg(list, int);
	va_end(list);
	pthread_mutex_lock(&s->lock);
	error = control(s, cmd, argument, &value);
	pthread_mutex_unlock(&s->lock);
	rs_put(s);
	return error != 0 ? result(error) : value;
}
