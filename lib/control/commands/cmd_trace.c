/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace of a queue pair. There is one at a time, for any caller, from TRACE_START to
 * TRACE_STOP, even after the queue pair is gone. Lcores write it; readers get a copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/control.h"
#include "control/network/peers.h"
#include "lcore/capture/capture.h"
#include "lcore/capture/trace.h"

static int start(struct call *call, const struct request_trace *r)
{
	struct engine *e = call->engine;
	struct control *c = e->control;
	const struct engine_qp *q;
	struct trace *t;

	if (c->trace != NULL)
		return call_fail(call, EBUSY,
				 "queue pair 0x%06x is traced already; end that trace first",
				 c->trace->qpn);
	if (r->packets < 1 || r->packets > LIMIT_TRACE_PACKETS)
		return call_fail(call, EINVAL, "%u packets: must be in 1 .. %u", r->packets,
				 LIMIT_TRACE_PACKETS);
	q = directory_find(e, r->qpn);
	if (q == NULL)
		return call_fail(call, ENOENT, "no queue pair has the number 0x%06x", r->qpn);
	t = trace_make(r->qpn, q->has_peer ? q->peer_qpn : 0, r->packets, e->lcores);
	if (t == NULL)
		return call_fail(call, ENOMEM, "no memory for %u packets of %u lcores", r->packets,
				 e->lcores);
	memset(&c->trace_peer, 0, sizeof(c->trace_peer));
	if (q->has_peer)
		c->trace_peer = qp_address_vector(q->core)->dgid;
	c->trace = t;
	__atomic_store_n(&c->copies.trace, t, __ATOMIC_RELEASE); /* pairs with capture_copy */
	capture_change(e);
	return 0;
}

/* A file of what there is. Its descriptor, or a negative errno. */
static int make_file(const struct trace *t, uint32_t *count)
{
	size_t most = (size_t)t->slots * sizeof(struct traced_packet);
	struct traced_packet *p = malloc(most);
	int fd = memfd_create("uroce-trace", MFD_CLOEXEC), error = 0;

	*count = 0;
	if (p == NULL || fd < 0)
		error = p == NULL ? ENOMEM : errno;
	for (uint32_t i = 0; i < t->rings && error == 0; i++) {
		uint32_t n = trace_copy(t, i, p);
		size_t octets = n * sizeof(*p);

		if (write(fd, p, octets) != (ssize_t)octets)
			error = ENOMEM;
		*count += n;
	}
	free(p);
	if (error != 0 && fd >= 0)
		close(fd);
	return error != 0 ? -error : fd;
}

static int read_it(struct call *call, struct reply_trace *reply)
{
	const struct control *c = call->engine->control;
	const struct trace *t = c->trace;
	int fd = make_file(t, &reply->count);

	if (fd < 0)
		return call_fail(call, -fd, "cannot make a copy of the packets: %s", strerror(-fd));
	reply->qpn = t->qpn;
	reply->peer_qpn = t->peer_qpn;
	reply->packets = t->slots;
	reply->seen = trace_seen(t);
	reply->peer = c->trace_peer;
	call->out.fd[call->out.count++] = fd;
	return 0;
}

int cmd_trace(struct call *call)
{
	const struct request_trace *r = (const struct request_trace *)call->request;
	struct reply_trace *reply = (struct reply_trace *)&call->reply;

	if (call->connection == NULL || !call_sees_all(call))
		return call_fail(
			call, EPERM,
			"only root and the engine's user may trace packets, which may be any user's");
	if (r->action == TRACE_START)
		return start(call, r);
	if (r->action != TRACE_READ && r->action != TRACE_STOP)
		return call_fail(call, EINVAL, "no such action: %u", r->action);
	if (call->engine->control->trace == NULL)
		return call_fail(call, ENOENT, "no queue pair is traced");
	if (r->action == TRACE_READ)
		return read_it(call, reply);
	trace_end(call->engine);
	return 0;
}

void trace_end(struct engine *e)
{
	struct control *c = e->control;

	if (c->trace == NULL)
		return;
	__atomic_store_n(&c->copies.trace, NULL, __ATOMIC_RELEASE);
	capture_change(e);
	engine_grace_period(e);
	trace_free(c->trace);
	c->trace = NULL;
}

void trace_connected(struct engine *e, const struct engine_qp *q)
{
	struct control *c = e->control;

	if (c->trace == NULL || c->trace->qpn != q->qpn)
		return;
	c->trace_peer = qp_address_vector(q->core)->dgid;
	__atomic_store_n(&c->trace->peer_qpn, q->peer_qpn, __ATOMIC_RELAXED);
}
