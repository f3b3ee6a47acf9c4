/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets: the calls of socket(2) over queue pairs (rsocket(7)). Each public function behaves like
 * its counterpart without the r: it returns -1 with errno in the same cases, any thread may call
 * it, and a thread that waits in it may be cancelled. ENODEV: the engine is gone. rs_wire.h is the
 * wire format, rs_flow.h the flow control.
 *
 * A socket is found by the number of its descriptor. A stream uses the descriptor of its event
 * channel, a datagram socket that of its UDP socket, so the kernel gives the number to nothing
 * else. Every call holds a reference while it runs. rclose() takes the socket out of the table and
 * wakes the threads that wait in it.
 *
 * One thread (rs_service.c) does everything that happens without a call of the program: requests
 * for connections, their answers, their ends, and UDP datagrams. Any thread that needs a completion
 * polls for it, under the socket's lock.
 *
 * A thread that has to wait registers first (struct rs_sleeper), looks once more, then polls the
 * completion channel and a descriptor of its own. A thread that changes a socket's state, or takes
 * an event for which others may be polling, wakes the others through their descriptors (rs_wake).
 *
 * Locks are taken in this order: send_lock or receive_lock (one call in each direction at a time),
 * lock (everything else in the socket), then the locks of rs_table.c, rs_wake.c and the rest of the
 * library. A thread holds the locks of only one socket at a time. A listener's lock is taken while
 * no other is held.
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

#define RS_CONTROL_PLACES   4 /* of the send queue: for credits and for the end of the stream */
/*
 * Of the receive queue: for messages that take no credit, so that they arrive even if the program
 * does not look. With buffers of one size these are up to four grants, and the two that tell an end.
 * Keepalive messages take no credit either: after six that nobody read, the end is not sure to arrive.
 */
#define RS_CONTROL_RECEIVES 6
#define RS_QUEUE_MAX	    0xfffe /* credits are counted in 16 bits */

/*
 * The order matters: states before a connection, while one is being made, connected, and after it.
 */
enum rs_state {
	RS_NEW,
	RS_BOUND,
	RS_LISTENING,
	RS_RESOLVING, /* resolving the address */
	RS_ROUTING,
	RS_CONNECTING,
	RS_ACCEPTING,
	RS_CONNECTED,
	RS_REFUSED, /* the connection could not be made: see `error` */
	RS_DISCONNECTED,
	RS_FAILED, /* the connection broke: see `error` */
};

/* Sizes: the defaults of /etc/rdma/rsocket, or those that a socket's options set. */
struct rs_sizes {
	uint32_t receive_buffer, send_buffer; /* octets */
	uint16_t send_queue, receive_queue; /* requests */
	uint16_t inline_data; /* octets */
	uint16_t iomap_entries; /* entries of our table, for buffers that the peer maps */
};

struct rs_options {
	bool reuse_address, keep_alive, oob_inline, no_delay, v6_only;
	struct linger linger;
	int keep_idle, tos;
};

/* Memory registered for the queue pair. */
struct rs_memory {
	uint8_t *octets;
	size_t size;
	struct ibv_mr *mr;
};

/* A mapped buffer: in entry `entry` of the peer's table, or (-1) for local use. */
struct rs_mapping {
	struct ibv_mr *mr;
	uint64_t offset;
	int entry;
	bool told; /* the peer has been told */
	struct rs_mapping *next;
};

struct rs_stream {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rs_inflow in;
	struct rs_outflow out;
	struct rs_memory receive, send, table;
	uint32_t *lengths; /* ring of lengths, used by `in` */
	/* The peer's table of buffers, to which the next half is published. */
	struct rs_sge peer_table;
	uint32_t peer_entry;
	bool swap; /* the peer's byte order differs from ours */
	uint64_t peer_iomap; /* address of the peer's table of mapped buffers, key of peer_table */
	uint16_t peer_iomap_entries;
	struct rs_sge target; /* the unfilled rest of the peer's buffer that we write into */
	uint32_t target_entry; /* entry of our table in which the peer publishes its next buffer */
	struct rs_mapping *mappings;
	bool shut; /* rshutdown() or rclose() ended what we send */
	bool end_arrived; /* the peer has all our data, and RS_SHUTDOWN behind it */
	bool peer_ended; /* its RS_SHUTDOWN came */
	bool connect_reported; /* a second rconnect() answers EISCONN */
	/* of listeners */
	struct rs_socket *ready, **ready_end; /* connections that raccept() can return */
	int backlog, asked; /* connections in `ready` or being accepted */
	/*
	 * Of an accepted connection: its listener. NULL once raccept() has returned the connection.
	 */
	struct rs_socket *listener;
	struct rs_socket *next_ready;
};

struct rs_destination;
struct rs_local;
struct rs_datagram;

struct rs_datagrams {
	struct rs_local *locals; /* one queue pair for each local address that we send from */
	struct rs_destination *destinations; /* the most recently used one first */
	uint32_t resolving; /* destinations whose path is being resolved */
	struct rs_destination *peer; /* set by rconnect() */
	struct rs_destination *last; /* the destination of the last datagram */
	struct rs_datagram *first, **end; /* received, not read by the program yet */
	struct rs_datagram *places, *spare; /* memory for received datagrams */
	bool serving; /* the service thread watches this socket */
	int broken; /* errno once one of its queue pairs has failed; otherwise 0 */
	dev_t device; /* of the UDP socket, with its inode: programs close what they do not know */
	ino_t inode;
};

struct rs_socket {
	int fd, domain, type;
	unsigned references; /* guarded by the lock of rs_table.c */
	pthread_mutex_t send_lock, receive_lock, lock;
	/* guarded by `lock`, like all that follows */
	enum rs_state state;
	bool readable, writable;
	bool closed; /* rclose() was called; some call may still be running */
	int error; /* for SO_ERROR */
	int status_flags, descriptor_flags; /* set by rfcntl() */
	struct rs_sizes sizes;
	struct rs_options options;
	struct ibv_comp_channel *completions; /* NULL: there is no queue pair yet */
	struct ibv_cq *cq; /* of a stream */
	bool armed;
	int alive; /* the timer of a stream's keep-alives; -1: none */
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

/* Asynchronous errors are reported once. The caller holds the lock. 0: there is none. */
static inline int rs_take_error(struct rs_socket *s)
{
	int error = s->error;

	s->error = 0;
	return error;
}

/* ---- rs_defaults.c ---- */

struct rs_defaults {
	struct rs_sizes sizes;
	uint32_t spin_us; /* how long to spin before sleeping */
	int wake_up_ms; /* how long rpoll() sleeps before it looks again */
};

const struct rs_defaults *rs_defaults(void);
/* Clamps sizes to what the protocol and the device support. */
void rs_sizes_clamp(struct rs_sizes *s, uint32_t device_max);

/* ---- rs_table.c ---- */

/* Enters the socket. The table owns its first reference. Returns 0 or ENOMEM. */
int rs_enter(struct rs_socket *s);
/* Takes a reference. NULL with errno EBADF. */
struct rs_socket *rs_get(int fd);
void rs_hold(struct rs_socket *s);
/* Gives a reference back; the last one frees the socket. */
void rs_put(struct rs_socket *s);
/* Takes the socket out of the table and hands over the table's reference. NULL with errno EBADF. */
struct rs_socket *rs_leave(int fd);

/* ---- rs_socket.c ---- */

struct rs_socket *rs_new(int domain, int type);
void rs_free(struct rs_socket *s);
/*
 * Ends the connection, wakes waiting threads, and gives the reference back. Called after rs_leave.
 */
void rs_finish(struct rs_socket *s);
/* Copies like getsockname(2): truncates the address and reports its full length. */
void rs_copy_address(const struct sockaddr_storage *from, struct sockaddr *to, socklen_t *length);
/* 0, EFAULT, EINVAL or EAFNOSUPPORT. */
int rs_check_address(const struct rs_socket *s, const struct sockaddr *a, socklen_t length);
socklen_t rs_address_length(const struct sockaddr *a);

/* ---- rs_wake.c ---- */

struct rs_sleeper {
	int fd; /* readable when woken; rs_sleeper_end drains it */
	const struct rs_socket *only; /* the socket of interest; NULL: any */
	struct rs_sleeper *next, **link;
};

/* Returns 0 or an errno. */
int rs_sleeper_begin(struct rs_sleeper *w, const struct rs_socket *only);
void rs_sleeper_drain(struct rs_sleeper *w);
void rs_sleeper_end(struct rs_sleeper *w);
int64_t rs_now_us(void);

/*
 * poll(2) during which the thread's cancel state is `cancelstate`. Cancelling is disabled before
 * and afterwards. `cancelled(argument)` runs if the thread is cancelled.
 */
int rs_poll_cancellable(struct pollfd *p, nfds_t nfds, int patience_ms, int cancelstate,
			void (*cancelled)(void *), void *argument);
void rs_wake(const struct rs_socket *s);

/* ---- rs_wait.c: with lock held ---- */

typedef bool rs_condition(struct rs_socket *s);

/* Handles completions and grants credits until nothing is left to do. */
void rs_process(struct rs_socket *s);
/* Requests an event for the next completion. */
void rs_arm(struct rs_socket *s);
/* Call when the completion channel is readable: takes its events and wakes other threads. */
void rs_take_events(struct rs_socket *s);
/*
 * Waits until the condition is true. 0; EINTR: a signal came whose handler may be one without
 * SA_RESTART; or EAGAIN: it is false, and the call must not wait. Releases the lock while it sleeps.
 * The thread may be cancelled there, if the call holds one reference and took send_lock or
 * receive_lock with rs_direction_begin.
 */
int rs_wait(struct rs_socket *s, rs_condition *is_true, bool must_not_wait);
/* The same when a socket ends. Signals do not interrupt it. EAGAIN after `patience_ms`. */
int rs_linger(struct rs_socket *s, rs_condition *is_true, int patience_ms);
void rs_direction_begin(pthread_mutex_t *lock);
void rs_direction_end(void);

/* ---- rs_stream.c: with lock held ---- */

void rs_stream_process(struct rs_socket *s);
/* A message without data. `what` says what its completion means. */
enum rs_posted {
	RS_POSTED_DATA,
	RS_POSTED_CONTROL,
	RS_POSTED_SHUTDOWN,
	RS_POSTED_DISCONNECT
};
int rs_stream_post(struct rs_socket *s, uint32_t message, enum rs_posted what);
/*
 * An RDMA WRITE of up to two pieces, from the send buffer or inline. `octets`: how many octets of
 * the send buffer it uses.
 */
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

/* Returns 0 or an errno. After an error, rs_endpoint_close frees the parts that were made. */
int rs_endpoint_open(struct rs_socket *s);
void rs_endpoint_close(struct rs_socket *s);
int rs_memory_open(struct rs_memory *m, struct ibv_pd *pd, size_t size, int access);
void rs_memory_close(struct rs_memory *m);
/* Makes a non-blocking completion channel. */
int rs_open_completions(struct rs_socket *s, struct ibv_context *context);
void rs_greet(const struct rs_socket *s, uint8_t greeting[RS_GREETING_SIZE]);
/* False: this is not a greeting of this protocol. */
bool rs_take_greeting(struct rs_socket *s, const void *data, size_t length);

/* ---- rs_connect.c ---- */

/* Called by the service thread when the channel is readable. */
void rs_connection_progress(struct rs_socket *s);
/*
 * Waits for the connection. Returns 0, or an errno: the connection does not exist (EAGAIN: not yet,
 * and the call must not wait). The caller holds the lock.
 */
int rs_await_connection(struct rs_socket *s, int flags);
/* rconnect() of a stream: 0 or an errno. */
int rs_stream_connect(struct rs_socket *s, const struct sockaddr *a);
int rs_error_of_event(const struct rdma_cm_event *event);

/* ---- rs_listen.c: with no lock held ---- */

void rs_listener_progress(struct rs_socket *listener);
/* The connection that is being accepted is established, or (false) has failed. */
void rs_listener_hears(struct rs_socket *child, bool established);
/* Closes the connections that raccept() has not returned. */
void rs_listener_close(struct rs_socket *listener);

/* ---- rs_shutdown.c ---- */

/* 0 or an errno. The caller holds the lock. */
int rs_stream_shutdown(struct rs_socket *s, int how);

/* ---- rs_keepalive.c: with lock held, but for the last one ---- */

/*
 * Call when an option has changed or the stream is connected. The first call that finds SO_KEEPALIVE
 * set makes the timer. 0 or an errno of that.
 */
int rs_keepalive_follow(struct rs_socket *s);
void rs_keepalive_end(struct rs_socket *s);
/* Called by the service thread. */
void rs_keepalive_progress(struct rs_socket *s);

/* ---- rs_service.c ---- */

/* Makes the service thread watch the descriptor until it is readable. 0 or an errno. */
int rs_service_watch(int fd, int owner);
void rs_service_pause(int fd, int owner, bool paused);
void rs_service_unwatch(int fd);

/* ---- rs_copy.c ---- */

struct rs_cursor {
	const struct iovec *iov;
	int count;
	size_t at; /* octets of the first element that are done */
};

void rs_copy_from(struct rs_cursor *c, void *to, size_t length);
void rs_copy_to(struct rs_cursor *c, const void *from, size_t length);
/* The total length in octets. -1 with errno EINVAL: it is too long. */
ssize_t rs_iov_length(const struct iovec *iov, size_t count);

/* ---- rs_send.c, rs_receive.c: the caller holds a reference ---- */

/* Return the number of octets, or -1 with errno. */
ssize_t rs_stream_send(struct rs_socket *s, const struct iovec *iov, size_t count, int flags);
ssize_t rs_stream_receive(struct rs_socket *s, const struct iovec *iov, size_t count, int flags);

/* Why nothing can be sent any more. */
int rs_error_of_end(const struct rs_socket *s);

/* ---- rs_iomap.c ---- */

/*
 * Tells the peer about entries that it does not know yet. The caller holds lock and send_lock.
 * Returns 0 or an errno.
 */
int rs_tell_mappings(struct rs_socket *s, int flags);
void rs_free_mappings(struct rs_socket *s);
/* Stores the rest of the mapped buffer from the offset on. False: nothing is mapped there. */
bool rs_find_mapped(const struct rs_socket *s, uint64_t offset, struct rs_sge *left);
/* Does what rs_stream_send does, into a mapped buffer of the peer. */
ssize_t rs_stream_send_to(struct rs_socket *s, const struct iovec *iov, uint64_t offset, int flags);

/* ---- rs_poll.c ---- */

short rs_revents(struct rs_socket *s, short events);

/* ---- rs_datagram.c ---- */

int rs_datagrams_open(struct rs_socket *s);
/* Waits until all sent messages have left. The caller holds the lock. */
void rs_datagrams_linger(struct rs_socket *s);
void rs_datagrams_close(struct rs_socket *s);
void rs_datagrams_process(struct rs_socket *s);
void rs_datagrams_arm(struct rs_socket *s);
rs_condition rs_datagram_may_go;
int rs_datagrams_bind(struct rs_socket *s, const struct sockaddr *a, socklen_t length);
int rs_datagrams_connect(struct rs_socket *s, const struct sockaddr *a, socklen_t length);
ssize_t rs_datagram_send(struct rs_socket *s, const struct iovec *iov, size_t count, int flags,
			 const struct sockaddr *to, socklen_t length);
/* Called by the service thread. */
void rs_datagrams_progress(struct rs_socket *s);

/* ---- rs_inbox.c ---- */

rs_condition rs_datagram_waits;
ssize_t rs_datagram_receive(struct rs_socket *s, const struct iovec *iov, size_t count, int flags,
			    struct sockaddr *from, socklen_t *length, int *message_flags);

#endif
