/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's objects. Each begins with the struct that programs see, so a pointer to one is also
 * a pointer to the other. Sizes and offsets of those structs are part of the ABI (abi.c asserts
 * them).
 *
 * Locks: posting holds qp->sq.lock or qp->rq.lock and polling holds cq->lock, each for one call. A
 * thread that holds cq->lock may take the locks of its queue pairs (flush.c, qp_modify.c), never
 * the other way round. A thread that holds the lock of the table of objects waits for none of them.
 *
 * Atomics here and in the files of this folder are between threads of one program that hold
 * different locks or none: counts, flags and states that one thread reads while another writes.
 * None of them orders other memory unless it says so, and none is shared with the engine except
 * words of lib/queue. So they are not in lib/queue.
 */
#ifndef VERBS_TYPES_H
#define VERBS_TYPES_H

#include <infiniband/verbs.h>

#include "base/bits.h"
#include "base/work.h"
#include "client/attachment.h"
#include "client/handle_map.h"
#include "client/lock.h"
#include "client/own_file.h"
#include "client/verbs_object.h"
#include "drivers/client_memory/promote.h"
#include "queue/arena.h"
#include "queue/cq_resize.h"
#include "queue/cq_ring.h"
#include "verbs/withdrawn.h"

/* Marks what verbs.map names, because the project is built with hidden visibility. */
#define EXPORT __attribute__((visibility("default")))

struct rte_ring;

struct device {
	struct ibv_device ibv;
	/*
	 * Other providers' libraries (libmlx5, libefa) read the word after ibv_device to recognise
	 * their own devices. It must be here, and its value must not be theirs.
	 */
	const void *provider;
	struct engine_source source;
	struct reply_device facts; /* as of the last ibv_get_device_list */
	uint32_t references; /* lists and contexts */
	struct device *next;
};

struct context {
	struct verbs_context verbs;
	struct verbs_object object;
	struct device *device;
	struct attachment *attachment;
	struct own_file async_file; /* of its async_fd */
	uint32_t handle;
	uint32_t references; /* one for the program, one for each object in it */
	bool closed;
	bool fatal_told; /* IBV_EVENT_DEVICE_FATAL was delivered */
	int idle_fd; /* other end of a mute descriptor (events.h); -1: none */
	struct withdrawn withdrawn; /* of async_fd */
	int token_fd; /* the token with which it was imported; -1: it was opened */
	struct pd *retired; /* PDs that were unimported with objects in them */
	/* In the child of a fork: its own attachment and context, not the parent's (import.c). */
	struct attachment *own_attachment;
	uint32_t own_handle;
};

/*
 * A protection domain, or a parent domain (domain.h) around one. In both cases the handle is that
 * of the engine's protection domain, so a parent domain can be used wherever a PD can.
 */
struct pd {
	struct ibv_pd ibv;
	struct verbs_object object;
	bool imported;
	struct pd *next_retired;
	struct ibv_pd *inner; /* the PD inside a parent domain; NULL: this is a PD */
	struct td *td; /* NULL: none */
	bool has_allocators;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

struct td {
	struct ibv_td ibv;
	struct verbs_object object;
};

/* Memory of a queue, from its parent domain's allocator if it has one (domain.h). */
struct domain_memory {
	void *address;
	bool is_theirs; /* the domain's allocator made it and frees it */
};

struct dm {
	struct ibv_dm ibv;
	struct attachment *attachment;
	bool imported;
	uint8_t *base; /* the memory as this process maps it */
	size_t length;
	size_t mapped;
};

/* The promoted parts of a region's memory. */
struct promoted {
	bool looked_at; /* promote_enter was called; promote_leave must be */
	struct promote_region region;
};

enum mr_kind {
	MR_MEMORY,
	MR_NULL,
	MR_DEVICE,
};

struct mr {
	struct ibv_mr ibv;
	enum mr_kind kind;
	unsigned int access; /* enum ibv_access_flags */
	struct promoted promoted;
};

struct channel {
	struct ibv_comp_channel ibv;
	struct verbs_object object;
	struct own_file file; /* of its descriptor */
	uint32_t handle;
	int idle_fd; /* atomic: other end of a mute descriptor (events.h); -1: none */
	struct withdrawn withdrawn; /* of ibv.fd */
};

struct cq {
	struct ibv_cq_ex ibv;
	struct queue_lock lock;
	struct rte_ring *ring;
	struct cq_page *page;
	struct cq_backlog backlog; /* completions of earlier rings (ibv_resize_cq); polled first */
	struct attachment *attachment;
	uint32_t empty_polls; /* consecutive */
	bool stale; /* the CQ is the parent's, and this process the child of a fork */
	bool polled; /* atomic: the program has polled since its last event */
	bool told_gone; /* its channel was told that the engine is gone */
	struct qp *last; /* queue pair of the last completion */
	uint32_t last_handle;
	struct handle_map qps; /* from handles to struct qp */
	struct domain_memory qps_memory;
	struct ibv_pd *domain; /* a parent domain; NULL: none */
	bool loses; /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: completions may be missing */
	bool tells_wallclock;
	uint64_t wallclock; /* CLOCK_REALTIME minus the engine's clock, at the last start_poll */
	struct completion current; /* between start_poll and end_poll */
	pthread_t poller; /* atomic: the thread between start_poll and end_poll; 0: none */
	struct verbs_object object;
	struct channel *channel;
};

/*
 * One queue of a queue pair. It remembers requests that have no completion yet, for the flush
 * completions that the library makes when the engine is gone. Requests are numbered modulo 2^32:
 *
 *	done <= retired <= posted
 */
struct work_queue {
	struct queue_lock lock;
	uint32_t resets; /* under way: nothing may be posted */
	struct rte_ring *ring; /* NULL: the queue pair has no such queue */
	uint32_t stride; /* octets of a slot */
	uint32_t max_wr; /* as granted */
	uint32_t max_sge;
	uint32_t posted;
	uint32_t read; /* ring_client_reserve_seen() */
	uint32_t done; /* the requests before this one have completed and were polled */
	uint32_t signaled_posted; /* send queue: signaled requests that were posted ... */
	uint32_t signaled_polled; /* ... and whose completions were polled */
	uint32_t mask; /* for indices of the two arrays */
	uint64_t *wr_id;
	uint8_t *signaled;
	struct ibv_pd *domain; /* allocates the arrays; set before work_queue_init */
	struct domain_memory memory; /* of both arrays */
	bool loses; /* its CQ may lose completions, so unpolled ones take no slots */
};

/*
 * Whether number a is after b. Neither is after `posted`, so their distances to it tell. Compared
 * with each other, a `done` that is 2^31 requests old would be the later one: nobody has to poll.
 */
static inline bool work_is_after(const struct work_queue *q, uint32_t a, uint32_t b)
{
	uint32_t posted = __atomic_load_n(&q->posted, __ATOMIC_RELAXED);

	return posted - a < posted - b;
}

struct qp {
	struct ibv_qp_ex ibv;
	/* newer versions of verbs.h append functions to ibv_qp_ex; this is the first of them */
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t length,
			 uint8_t type, uint8_t level);
	uint64_t later_headers[7];
	struct work_queue sq;
	struct work_queue rq;
	struct qp_page *page;
	struct rte_ring *bell;
	const uint32_t *sleeping;
	int wake_fd;
	uint32_t lcore; /* the lcore that these three lead to */
	uint32_t handle;
	uint32_t max_inline;
	uint32_t mtu; /* UD: octets of the longest datagram */
	uint32_t opcodes; /* carries.h: the opcodes that the queue pair carries */
	uint32_t send_flags; /* carries.h: the flags that its requests may have */
	uint8_t sig_all;
	bool stale; /* the queue pair is the parent's, and this process the child of a fork */
	bool extended; /* created with send_ops_flags */
	struct attachment *attachment;
	struct cq_page *send_page, *recv_page; /* of the CQs, for threads that post; NULL: no CQ */
	struct ibv_qp_init_attr init;
	struct xrcd *xrcd; /* of an XRC target */
	struct verbs_object object;
	/* valid between wr_start and wr_complete; sq.lock guards them */
	uint8_t *batch; /* max_send_wr slots, if `extended` */
	struct domain_memory batch_memory;
	uint32_t batch_count; /* how many requests the batch has */
	int batch_error; /* the first error, for which the whole batch is refused */
	uint16_t raw_flags; /* enum raw_flag; RAW_WQ: it is part of a struct wq */
	uint16_t max_tso_header;
	uint32_t cm_id; /* the rdma_cm id for which it is created; 0: none */
	uint8_t tso_header[LIMIT_TSO_HEADER]; /* of the request that is being built */
	/* handle of a queue pair on an indirection table; 0: it has queues of its own */
	uint32_t rss;
	struct send_work *building; /* the request that setters change; NULL: none */
};

static inline struct context *context_of(struct ibv_context *c)
{
	return container_of_type(c, struct context, verbs.context);
}

static inline struct device *device_of(struct ibv_device *d)
{
	return (struct device *)d;
}

static inline struct pd *pd_of(struct ibv_pd *pd)
{
	return (struct pd *)pd;
}

static inline struct dm *dm_of(struct ibv_dm *dm)
{
	return (struct dm *)dm;
}

static inline struct channel *channel_of(struct ibv_comp_channel *channel)
{
	return (struct channel *)channel;
}

static inline struct cq *cq_of(struct ibv_cq *cq)
{
	return (struct cq *)cq;
}

static inline struct qp *qp_of(struct ibv_qp *qp)
{
	return (struct qp *)qp;
}

/* Whether requests with this opcode may be posted to the queue pair. Any number is allowed. */
static inline bool qp_carries(const struct qp *qp, uint32_t opcode)
{
	return opcode < 32 && (qp->opcodes >> opcode & 1);
}

static inline struct attachment *attachment_of(struct ibv_context *c)
{
	return context_of(c)->attachment;
}

/*
 * The state in the program's struct ibv_qp: several threads may read and change it. A thread that sees
 * the state also sees the lcore, which the engine wrote before it answered the change: acquire, release.
 */
static inline enum ibv_qp_state qp_shown_state(const struct ibv_qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
}

static inline void qp_show_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->state, state, __ATOMIC_RELEASE);
}

/* Sets errno and returns NULL, for verbs that return a pointer. */
static inline void *fail_with(int error)
{
	errno = error;
	return NULL;
}

/*
 * context.c: opens a context of the device or, with a token (otherwise -1), imports the token's
 * context. Takes over the caller's reference to the device. Returns 0, or an errno; then the caller
 * keeps the reference. The caller keeps the token in any case.
 */
int context_open(struct device *device, int token_fd, struct context **out);
/* pd.c: a protection domain that this command creates. NULL with errno. */
struct pd *pd_make(struct context *c, enum command command, struct command_request *request,
		   size_t length);

/* context.c: takes and gives back a reference. Any thread. */
void context_hold(struct context *c);
void context_drop(struct context *c);
/*
 * The result of a destroying verb, from the engine's answer. 0 if the engine is gone or the context
 * was closed before, because the object is destroyed already.
 */
int destroy_error(const struct context *c, int error);
/*
 * Destroys an object of the context in the engine. Does nothing if the context was closed: the
 * object went with it, and its handle may already name another one. Returns 0 or an errno.
 */
int context_destroy(struct context *c, enum command what, uint32_t handle);

/* mr.c: frees the library's part of a region and changes nothing else. */
void mr_abandon(struct mr *mr);

/*
 * import.c: the attachment, and the handle of the context there, for new objects of this process.
 * In the child of a fork they are its own. Returns 0 or an errno.
 */
int context_own_attachment(struct context *c, struct attachment **attachment, uint32_t *handle);
/* import.c: reads a token. 0; EBADF: not a descriptor; EINVAL: not a token. */
int token_read(int fd, struct context_token *token);

/*
 * The functions in struct ibv_context_ops and struct verbs_context; the manual pages describe them.
 */
int verbs_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int verbs_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		     size_t attr_size);
int verbs_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size);
struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd);
int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *init_attr);
int verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
struct ibv_td *verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr);
int verbs_dealloc_td(struct ibv_td *td);
struct ibv_pd *verbs_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr);
int verbs_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
struct ibv_dm *verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int verbs_free_dm(struct ibv_dm *dm);
struct ibv_mr *verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			       size_t length, unsigned int access);
struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *init_attr);

#endif
