/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets: the calls of socket(2) over queue pairs (rsocket(7)). rs_wire.h is what goes over the
 * wire, rs_flow.h who may send how much.
 *
 * A socket is found by the number of its descriptor: a stream's is the one of its event channel, a
 * datagram socket's the one of its UDP socket, so that numbers are nobody else's. Every call holds a
 * reference while it lasts; rclose() takes the socket out of the table and wakes who waits in it.
 *
 * What happens without a call of the program (connections asked for, answered, ended; UDP
 * datagrams) is done by one thread (rs_service.c), and by nobody else. Completions are looked at by
 * whoever needs them, under the socket's lock.
 *
 * Waiting: a thread that has to wait says so (struct rs_sleeper), looks once more, then polls the
 * completion channel and a descriptor of its own. Who changes a socket's state, or takes the event
 * that others may be polling for, wakes the others by theirs (rs_wake).
 *
 * Locks, in the order in which they are taken: send_lock or receive_lock (calls of one direction come
 * one after the other), lock (everything else in the socket), then those of rs_table.c, rs_wake.c
 * and the rest of the library. No two sockets' locks at once, but a listener's inside nothing.
 */
#ifndef RDMACM_RS_H
#define RDMACM_RS_H

#include <fcntl.h>
#include <rdma/rsocket.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "rdmacm/rsockets/rs_flow.h"
#include "rdmacm/rsockets/rs_wire.h"
#include "rdmacm/types.h"

#define RS_CONTROL_PLACES 4 /* of the send queue: for credits and for the end */
#define RS_QUEUE_MAX	  0xfffe

/* In this order: before there is a connection, while it is being made, with one, after it. */
enum rs_state {
	RS_NEW,
	RS_BOUND,
	RS_LISTENING,
	RS_RESOLVING, /* the address */
	RS_ROUTING,
	RS_CONNECTING,
	RS_ACCEPTING,
	RS_CONNECTED,
	RS_REFUSED, /* the connection could not be made: `error` */
	RS_DISCONNECTED,
	RS_FAILED, /* it broke: `error` */
};

/* Defaults of /etc/rdma/rsocket; of a socket what its options say. */
struct rs_sizes {
	uint32_t receive_buffer, send_buffer; /* octets */
	uint16_t send_queue, receive_queue; /* requests */
	uint16_t inline_data; /* octets */
	uint16_t iomap_entries; /* that the peer may have mapped into our table */
};

struct rs_options {
	bool reuse_address, keep_alive, oob_inline, no_delay, v6_only;
	struct linger linger;
	int keep_idle, tos;
};

/* Memory that the queue pair may use. */
struct rs_memory {
	uint8_t *octets;
	size_t size;
	struct ibv_mr *mr;
};

/* A buffer of the program that is mapped: for the peer in `entry` of its table, or (-1) for us. */
struct rs_mapping {
	struct ibv_mr *mr;
	uint64_t offset;
	int entry;
	bool told; /* the peer knows of it */
	struct rs_mapping *next;
};

struct rs_stream {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rs_inflow in;
	struct rs_outflow out;
	struct rs_memory receive, send, table;
	uint32_t *lengths; /* of in */
	/* The peer's table of buffers: where the next half is published. */
	struct rs_sge peer_table;
	uint32_t peer_entry;
	bool swap; /* its byte order is not ours */
	uint64_t peer_iomap; /* address of its table of mapped buffers, key of peer_table */
	uint16_t peer_iomap_entries;
	struct rs_sge target; /* what is left of the buffer of the peer's that we fill */
	uint32_t target_entry; /* of our table: where the next one is published */
	struct rs_mapping *mappings;
	bool connect_reported; /* a second rconnect() says EISCONN */
	/* listeners */
	struct rs_socket *ready, **ready_end; /* connections for raccept() */
	int backlog, asked; /* asked: ready or being accepted */
	/* connections that came: who listened; NULL: raccept() has returned it */
	struct rs_socket *listener;
	struct rs_socket *next_ready;
};

struct rs_destination;
struct rs_local;
struct rs_datagram;

struct rs_datagrams {
	struct rs_local *locals; /* a queue pair for each of our addresses that we send from */
	struct rs_destination *destinations; /* the one asked for last first */
	uint32_t resolving; /* how many of them look for their path */
	struct rs_destination *peer; /* of rconnect() */
	struct rs_destination *last; /* sent to */
	struct rs_datagram *first, **end; /* received, for the program */
	struct rs_datagram *places, *spare; /* for them */
	bool serving; /* the service thread listens */
	int broken; /* errno: a queue pair of it works no more; 0 */
};

struct rs_socket {
	int fd, domain, type;
	unsigned references; /* of rs_table.c */
	pthread_mutex_t send_lock, receive_lock, lock;
	/* all that follows: lock */
	enum rs_state state;
	bool readable, writable;
	bool closed; /* by rclose(); somebody is still inside */
	int error; /* for SO_ERROR */
	int status_flags, descriptor_flags; /* of rfcntl() */
	struct rs_sizes sizes;
	struct rs_options options;
	struct ibv_comp_channel *completions; /* NULL: no queue pair yet */
	struct ibv_cq *cq; /* a stream's */
	bool armed;
	union {
		struct rs_stream stream;
		struct rs_datagrams datagrams;
	};
};

static inline bool rs_is_opening(const struct rs_socket *s)
{
	return s->state >= RS_RESOLVING && s->state <= RS_ACCEPTING;
}

static inline bool rs_is_stream(const struct rs_socket *s)
{
	return s->type == SOCK_STREAM;
}

static inline bool rs_must_not_wait(const struct rs_socket *s, int flags)
{
	return (s->status_flags & O_NONBLOCK) || (flags & MSG_DONTWAIT);
}

/* ---- rs_defaults.c ---- */

struct rs_defaults {
	struct rs_sizes sizes;
	uint32_t spin_us; /* how long one looks before one sleeps */
	int wake_up_ms; /* how long one sleeps in rpoll() before one looks again */
};

const struct rs_defaults *rs_defaults(void);
/* Sizes within what the protocol and the device can do. */
void rs_sizes_clamp(struct rs_sizes *s, uint32_t device_max);

/* ---- rs_table.c ---- */

/* 0 or ENOMEM. The socket's first reference is the table's. */
int rs_enter(struct rs_socket *s);
/* NULL with EBADF. */
struct rs_socket *rs_get(int fd);
void rs_hold(struct rs_socket *s);
/* The last one frees it. */
void rs_put(struct rs_socket *s);
/* Out of the table, with the table's reference; NULL with EBADF. */
struct rs_socket *rs_leave(int fd);

/* ---- rs_socket.c ---- */

struct rs_socket *rs_new(int domain, int type);
void rs_free(struct rs_socket *s);
/* After rs_leave: ends the connection, wakes who waits, lets go of it. */
void rs_finish(struct rs_socket *s);
/* Copies like getsockname(2): what does not fit is cut off, the length is the whole one. */
void rs_copy_address(const struct sockaddr_storage *from, struct sockaddr *to, socklen_t *length);
/* 0, EFAULT, EINVAL, EAFNOSUPPORT */
int rs_check_address(const struct rs_socket *s, const struct sockaddr *a, socklen_t length);
socklen_t rs_address_length(const struct sockaddr *a);

/* ---- rs_wake.c ---- */

struct rs_sleeper {
	int fd; /* becomes readable; drained by rs_sleeper_end */
	const struct rs_socket *only; /* NULL: any */
	struct rs_sleeper *next, **link;
};

/* 0 or an errno */
int rs_sleeper_begin(struct rs_sleeper *w, const struct rs_socket *only);
void rs_sleeper_drain(struct rs_sleeper *w);
void rs_sleeper_end(struct rs_sleeper *w);
int64_t rs_now_us(void);

/*
 * poll(2) with the thread's cancel state set to `cancelstate` meanwhile; it is disabled before and
 * afterwards. `cancelled(argument)` runs if the thread is cancelled.
 */
int rs_poll_cancellable(struct pollfd *p, nfds_t nfds, int patience_ms, int cancelstate,
			void (*cancelled)(void *), void *argument);
void rs_wake(const struct rs_socket *s);

/* ---- rs_wait.c: with lock held ---- */

typedef bool rs_condition(struct rs_socket *s);

/* Completions are taken in, credits given, until there is nothing more to do. */
void rs_process(struct rs_socket *s);
/* The next completion will make an event. */
void rs_arm(struct rs_socket *s);
/* The completion channel is readable: its events are taken, others are told. */
void rs_take_events(struct rs_socket *s);
/*
 * Waits until the condition is true. 0; EAGAIN: it must not wait; EINTR. The lock is let go meanwhile,
 * and the thread may be cancelled: by a call that has one reference and, of send_lock and receive_lock,
 * what it took by rs_direction_begin.
 */
int rs_wait(struct rs_socket *s, rs_condition *is_true, bool must_not_wait);
/* ... at the end of a socket: signals do not cut it short. EAGAIN: `patience_ms` are over. */
int rs_linger(struct rs_socket *s, rs_condition *is_true, int patience_ms);
void rs_direction_begin(pthread_mutex_t *lock);
void rs_direction_end(void);

/* ---- rs_stream.c: with lock held ---- */

void rs_stream_process(struct rs_socket *s);
/* A message without data; `what`: for what its completion means. */
enum rs_posted {
	RS_POSTED_DATA,
	RS_POSTED_CONTROL,
	RS_POSTED_END
};
int rs_stream_post(struct rs_socket *s, uint32_t message, enum rs_posted what);
/* RDMA WRITE of up to two pieces: of the send buffer, or inline. `octets`: that the buffer lends. */
struct rs_write {
	struct ibv_sge sge[2];
	int pieces;
	uint64_t address;
	uint32_t key;
	bool is_inline;
	bool has_message;
	uint32_t message;
	uint32_t octets;
	enum rs_posted what;
};

int rs_stream_write(struct rs_socket *s, const struct rs_write *w);
void rs_stream_fail(struct rs_socket *s, int error);
void rs_stream_disconnected(struct rs_socket *s);
rs_condition rs_may_send, rs_may_send_or_gone, rs_has_data_or_gone, rs_all_is_sent;

/* ---- rs_endpoint.c ---- */

/* 0 or an errno; what there is of it goes with rs_endpoint_close. */
int rs_endpoint_open(struct rs_socket *s);
void rs_endpoint_close(struct rs_socket *s);
int rs_memory_open(struct rs_memory *m, struct ibv_pd *pd, size_t size, int access);
void rs_memory_close(struct rs_memory *m);
/* A channel that does not wait. */
int rs_open_completions(struct rs_socket *s, struct ibv_context *context);
void rs_greet(const struct rs_socket *s, uint8_t greeting[RS_GREETING_SIZE]);
/* false: it is no greeting of this protocol. */
bool rs_take_greeting(struct rs_socket *s, const void *data, size_t length);

/* ---- rs_connect.c ---- */

/* By the service thread: the channel has something to say. */
void rs_connection_progress(struct rs_socket *s);
/* 0, or an errno: the connection is not there (EAGAIN: not yet, and it must not wait). Lock held. */
int rs_await_connection(struct rs_socket *s, int flags);
/* rconnect() to a stream's peer: 0 or an errno. */
int rs_stream_connect(struct rs_socket *s, const struct sockaddr *a);
int rs_error_of_event(const struct rdma_cm_event *event);

/* ---- rs_listen.c: with no lock held ---- */

void rs_listener_progress(struct rs_socket *listener);
/* A connection that was being accepted is established, or (false) has failed. */
void rs_listener_hears(struct rs_socket *child, bool established);
/* Connections that nobody will take any more. */
void rs_listener_close(struct rs_socket *listener);

/* ---- rs_shutdown.c ---- */

/* Lock held. 0 or an errno. */
int rs_stream_shutdown(struct rs_socket *s, int how);

/* ---- rs_service.c ---- */

/* Whether the thread looks at the descriptor when it becomes readable. 0 or an errno. */
int rs_service_watch(int fd, int owner);
void rs_service_pause(int fd, int owner, bool paused);
void rs_service_unwatch(int fd);

/* ---- rs_copy.c ---- */

struct rs_cursor {
	const struct iovec *iov;
	int count;
	size_t at; /* octets of the first one that are done */
};

void rs_copy_from(struct rs_cursor *c, void *to, size_t length);
void rs_copy_to(struct rs_cursor *c, const void *from, size_t length);
/* The octets of all; -1: too many of them (EINVAL). */
ssize_t rs_iov_length(const struct iovec *iov, size_t count);

/* ---- rs_send.c, rs_receive.c: a reference held ---- */

/* The count, or -1 with errno. */
ssize_t rs_stream_send(struct rs_socket *s, const struct iovec *iov, size_t count, int flags);
ssize_t rs_stream_receive(struct rs_socket *s, const struct iovec *iov, size_t count, int flags);

/* ---- rs_iomap.c ---- */

/* With lock and send_lock held: entries that the peer does not know yet. 0 or an errno. */
int rs_tell_mappings(struct rs_socket *s, int flags);
void rs_free_mappings(struct rs_socket *s);
/* What is left of the mapped buffer at the offset. false: none. */
bool rs_find_mapped(const struct rs_socket *s, uint64_t offset, struct rs_sge *left);
/* As rs_stream_send, into a buffer of the peer. */
ssize_t rs_stream_send_to(struct rs_socket *s, const struct iovec *iov, uint64_t offset, int flags);

/* ---- rs_poll.c ---- */

short rs_revents(struct rs_socket *s, short events);

/* ---- rs_datagram.c ---- */

int rs_datagrams_open(struct rs_socket *s);
/* Lock held: what was sent goes out. */
void rs_datagrams_linger(struct rs_socket *s);
void rs_datagrams_close(struct rs_socket *s);
void rs_datagrams_process(struct rs_socket *s);
void rs_datagrams_arm(struct rs_socket *s);
rs_condition rs_datagram_may_go;
int rs_datagrams_bind(struct rs_socket *s, const struct sockaddr *a, socklen_t length);
int rs_datagrams_connect(struct rs_socket *s, const struct sockaddr *a, socklen_t length);
ssize_t rs_datagram_send(struct rs_socket *s, const struct iovec *iov, size_t count, int flags,
			 const struct sockaddr *to, socklen_t length);
/* By the service thread. */
void rs_datagrams_progress(struct rs_socket *s);

/* ---- rs_inbox.c ---- */

rs_condition rs_datagram_waits;
ssize_t rs_datagram_receive(struct rs_socket *s, const struct iovec *iov, size_t count, int flags,
			    struct sockaddr *from, socklen_t *length, int *message_flags);

#endif
