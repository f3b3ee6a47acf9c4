/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's objects. Each begins with the struct that programs see, so that a pointer to one
 * is a pointer to the other; sizes and places of those are part of the ABI (abi.c asserts them).
 *
 * Locks: qp->sq.lock and qp->rq.lock over posting, cq->lock over polling, each held for one call.
 * A poll may take the queue locks of its queue pairs inside its own (flush.c); never the other
 * way round. Control verbs take none of them but for moments.
 */
#ifndef VERBS_TYPES_H
#define VERBS_TYPES_H

#include <infiniband/verbs.h>

#include "base/bits.h"
#include "base/work.h"
#include "client/attachment.h"
#include "client/handle_map.h"
#include "client/lock.h"
#include "client/verbs_object.h"
#include "drivers/client_memory/promote.h"
#include "queue/arena.h"
#include "queue/cq_resize.h"
#include "queue/cq_ring.h"
#include "queue/ring_client.h"

/* The project is built with hidden visibility: what verbs.map names is marked. */
#define EXPORT __attribute__((visibility("default")))

struct device {
	struct ibv_device ibv;
	/*
	 * Other providers' libraries (libmlx5, libefa) read the word right behind ibv_device to
	 * recognise their own devices; it must be here and must not be theirs.
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
	uint32_t handle;
	uint32_t references; /* one for the program, one for each object in it */
	bool closed;
	bool fatal_told; /* IBV_EVENT_DEVICE_FATAL was handed out */
	int idle_fd; /* see events.c; -1: not in use */
	int token_fd; /* what the context was imported with; -1: it was opened */
	struct pd *retired; /* unimported while something was in them */
	/* In the child of a fork: this process's own client, and the context there (import.c). */
	struct attachment *own_attachment;
	uint32_t own_handle;
};

/*
 * A protection domain, or a parent domain (domain.h) around one: the handle is the engine's
 * protection domain in either case, so that a parent domain can be given wherever a PD can.
 */
struct pd {
	struct ibv_pd ibv;
	struct verbs_object object;
	bool imported;
	struct pd *next_retired;
	struct ibv_pd *inner; /* a parent domain's; NULL: this is a protection domain */
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

/* Zeroed memory of a queue, from its parent domain's allocator if it has one (domain.c). */
struct domain_memory {
	void *address;
	bool is_theirs; /* goes back to the domain's own free function */
};

struct dm {
	struct ibv_dm ibv;
	struct attachment *attachment;
	bool imported;
	uint8_t *base; /* where this side maps it */
	size_t length;
	size_t mapped;
};

/* What became of the memory of a region. */
struct promoted {
	bool looked_at; /* its promote_region is to be left */
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
	uint32_t handle;
	int idle_fd; /* see events.c; -1: not in use */
};

struct cq {
	struct ibv_cq_ex ibv;
	struct queue_lock lock;
	struct rte_ring *ring;
	struct cq_page *page;
	struct cq_backlog backlog; /* what a ring held that was left (ibv_resize_cq); comes first */
	struct attachment *attachment;
	uint32_t empty_polls; /* in a row */
	bool stale; /* of the parent of a fork */
	bool polled; /* atomic: since its last event */
	bool told_gone; /* its channel was woken because the engine is gone */
	struct qp *last; /* queue pair of the last completion */
	uint32_t last_handle;
	struct handle_map qps; /* by handle: struct qp * */
	struct domain_memory qps_memory;
	struct ibv_pd *domain; /* a parent domain; NULL: none */
	bool loses; /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: completions may be missing */
	bool tells_wallclock;
	uint64_t wallclock; /* CLOCK_REALTIME less the engine's clock, as of the last start_poll */
	struct completion current; /* between start_poll and end_poll */
	struct verbs_object object;
	struct channel *channel;
};

/*
 * What was posted and has no completion yet is remembered by number, for the flush completions
 * that the library makes itself when the engine is gone. Numbers run free, modulo 2^32:
 *
 *	done <= retired <= posted
 */
struct work_queue {
	struct queue_lock lock;
	struct rte_ring *ring; /* NULL: the queue pair has no such queue */
	uint32_t stride; /* octets of a slot */
	uint32_t max_wr; /* granted */
	uint32_t max_sge;
	uint32_t posted;
	uint32_t done; /* completions were polled for all before */
	uint32_t signaled_posted; /* send queue: completions that posted requests will make ... */
	uint32_t signaled_polled; /* ... and that were polled */
	uint32_t mask; /* of the two arrays */
	uint64_t *wr_id;
	uint8_t *signaled;
	struct ibv_pd *domain; /* where the arrays come from; set before work_queue_init */
	struct domain_memory memory; /* of both */
	bool loses; /* its CQ does: completions that nobody polls hold nothing up */
};

struct qp {
	struct ibv_qp_ex ibv;
	/* newer verbs.h append functions to ibv_qp_ex: this is the first of them */
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t length,
			 uint8_t type, uint8_t level);
	uint64_t later_headers[7];
	struct work_queue sq;
	struct work_queue rq;
	struct qp_page *page;
	struct rte_ring *bell;
	const uint32_t *sleeping;
	int wake_fd;
	uint32_t handle;
	uint32_t max_inline;
	uint32_t mtu; /* of the port, octets: the longest datagram */
	uint32_t opcodes; /* carries.h: the set that the queue pair carries */
	uint32_t send_flags; /* carries.h: the set that its requests may have */
	uint8_t sig_all;
	bool stale; /* of the parent of a fork */
	bool extended; /* made with send operations flags */
	struct attachment *attachment;
	struct ibv_qp_init_attr init;
	struct xrcd *xrcd; /* of an XRC target */
	struct verbs_object object;
	/* between wr_start and wr_complete; under sq.lock */
	uint8_t *batch; /* max_send_wr slots, if `extended` */
	struct domain_memory batch_memory;
	uint32_t batch_count; /* requests in it */
	int batch_error; /* the first; the whole batch is refused */
	uint16_t raw_flags; /* enum raw_flag; RAW_WQ: the inside of a struct wq */
	uint16_t max_tso_header;
	uint8_t tso_header[LIMIT_TSO_HEADER]; /* of the request that is being built */
	uint32_t rss; /* handle of what it is instead of a queue pair with queues; 0: it has them */
	struct send_work *building; /* the last of them; NULL: setters have nothing to set */
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

/* Whether requests with this opcode (enum ibv_wr_opcode, or anything) may be posted to it. */
static inline bool qp_carries(const struct qp *qp, uint32_t opcode)
{
	return opcode < 32 && (qp->opcodes >> opcode & 1);
}

static inline struct attachment *attachment_of(struct ibv_context *c)
{
	return context_of(c)->attachment;
}

/* The state that the program sees in its queue pair: several threads may read and change it. */
static inline enum ibv_qp_state qp_shown_state(const struct ibv_qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
}

static inline void qp_show_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->state, state, __ATOMIC_RELAXED);
}

/* NULL with errno, where a verb returns a pointer. */
static inline void *fail_with(int error)
{
	errno = error;
	return NULL;
}

/* context.c */
/*
 * Opens the device, which it takes over, or, with a token, imports the context that it stands for.
 * 0 or an errno; the token stays the caller's then.
 */
int context_open(struct device *device, int token_fd, struct context **out);
/* A protection domain that this command makes; NULL with errno. */
struct pd *pd_make(struct context *c, enum command command, struct command_request *request,
		   size_t length);

void context_hold(struct context *c);
void context_drop(struct context *c);
/*
 * What a destroying verb makes of the engine's answer: an engine that is gone, or a context that
 * was closed before, has destroyed the object already.
 */
int destroy_error(const struct context *c, int error);
/*
 * Destroys an object of the context, or nothing if that was closed: it went with it, and by now
 * its handle may be that of another one.
 */
int context_destroy(struct context *c, enum command what, uint32_t handle);

/* mr.c: frees what this side has of it, and changes nothing else. */
void mr_abandon(struct mr *mr);

/* import.c: the client that serves this process's new objects of the context. 0 or an errno. */
int context_own_attachment(struct context *c, struct attachment **attachment, uint32_t *handle);
/* ... of a descriptor: 0, EBADF for none, EINVAL for something else than a token. */
int token_read(int fd, struct context_token *token);

/* The functions behind struct ibv_context_ops and struct verbs_context. */
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
