/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace of a queue pair: which users may read it, one at a time, and its contents, also after
 * the queue pair is gone.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "config/limits.h"
#include "control/control.h"
#include "rig/control_rig.h"
#include "lcore/capture/capture.h"

#define PACKETS 4u

TestSuite(cmd_trace, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

static struct reply_trace reply;
static struct carrier_descriptors out;

/* The reply's errno; its file in out.fd[0] if there is one. */
static int trace(int fd, enum trace_action action, uint32_t qpn, uint32_t packets)
{
	struct request_trace q = { .action = action, .qpn = qpn, .packets = packets };

	memset(&out, 0, sizeof(out));
	return ask(fd, COMMAND_TRACE, &q.h, sizeof(q), &reply.h, sizeof(reply), NULL, &out);
}

static uint32_t make_qp(int fd, uint32_t *handle)
{
	struct request_create_qp q = {
		.type = 2, .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1
	};
	struct reply_create_qp r;
	struct objects o;

	make_objects(fd, &o);
	q.pd = o.pd;
	q.send_cq = q.recv_cq = o.cq;
	cr_assert_eq(create_qp(fd, &q, &r), 0);
	*handle = r.handle;
	return r.qpn;
}

static int trace_is_refused(void)
{
	int fd = message_connect(path);

	return fd >= 0 && trace(fd, TRACE_START, 17, 1) == EPERM &&
			       trace(fd, TRACE_READ, 0, 0) == EPERM &&
			       trace(fd, TRACE_STOP, 0, 0) == EPERM
		       ? 0
		       : 1;
}

Test(cmd_trace, strangers_trace_nothing)
{
	as_nobody(trace_is_refused);
}

Test(cmd_trace, wrong_wishes_are_refused)
{
	uint32_t handle, qpn;
	int fd = attach();

	qpn = make_qp(fd, &handle);
	cr_expect_eq(trace(fd, TRACE_READ, 0, 0), ENOENT);
	cr_expect_eq(trace(fd, TRACE_STOP, 0, 0), ENOENT);
	cr_expect_eq(trace(fd, 0, qpn, 1), EINVAL);
	cr_expect_eq(trace(fd, TRACE_STOP + 1, qpn, 1), EINVAL);
	cr_expect_eq(trace(fd, TRACE_START, qpn, 0), EINVAL);
	cr_expect_eq(trace(fd, TRACE_START, qpn, LIMIT_TRACE_PACKETS + 1), EINVAL);
	cr_expect_eq(trace(fd, TRACE_START, qpn ^ 0x10, 1), ENOENT);
	cr_expect_eq(trace(fd, TRACE_START, UINT32_MAX, 1), ENOENT);
	cr_expect_eq(trace(fd, TRACE_START, qpn, LIMIT_TRACE_PACKETS), 0);
	cr_expect_eq(trace(fd, TRACE_START, qpn, 1), EBUSY);
	cr_expect_eq(trace(fd, TRACE_STOP, 0, 0), 0);
	cr_expect_eq(trace(fd, TRACE_READ, 0, 0), ENOENT);
	close(fd);
	expect_serving();
}

/* A frame to `qpn`, of which the last octet is `mark`. */
struct passing {
	uint32_t qpn;
	uint8_t mark;
	bool passed;
};

static void pass_frame(struct lcore *l, void *arg, nanotime now)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(l->engine->pool);
	struct passing *p = arg;
	uint8_t *f;

	if (m == NULL)
		return;
	f = (uint8_t *)rte_pktmbuf_append(m, 100);
	memset(f, 0, 100);
	f[12] = 0x08;
	f[14] = 0x45;
	f[23] = 17;
	f[36] = 4791 >> 8;
	f[37] = 4791 & 0xff;
	f[42] = 0x0a;
	f[47] = (uint8_t)(p->qpn >> 16);
	f[48] = (uint8_t)(p->qpn >> 8);
	f[49] = (uint8_t)p->qpn;
	f[99] = p->mark;
	capture_frames(l, &m, 1, CAPTURE_RECEIVED);
	rte_pktmbuf_free(m);
	p->passed = true;
}

static void pass(uint32_t qpn, uint8_t mark)
{
	struct engine *e = (struct engine *)engine;
	struct passing p = { .qpn = qpn, .mark = mark };

	pthread_mutex_lock(&e->control_lock);
	lcore_call(&e->lcore[0], pass_frame, &p);
	pthread_mutex_unlock(&e->control_lock);
	cr_assert(p.passed);
}

static void expect_marks(int fd, uint8_t first, uint32_t count)
{
	struct traced_packet p[PACKETS];

	cr_assert_eq(trace(fd, TRACE_READ, 0, 0), 0);
	cr_assert_eq(out.count, 1);
	cr_assert_eq(reply.count, count);
	cr_assert_eq(pread(out.fd[0], p, sizeof(p), 0), (ssize_t)(count * sizeof(*p)));
	for (uint32_t i = 0; i < count; i++) {
		cr_expect_eq(p[i].octets[99], first + i);
		cr_expect_eq(p[i].whole, 100);
		cr_expect_eq(p[i].length, 100);
		cr_expect_eq(p[i].way, CAPTURE_RECEIVED);
		cr_expect(p[i].at > 0 && p[i].at <= clock_now());
	}
	close(out.fd[0]);
}

/* Another connection may read it and end it, and the queue pair may be gone. */
Test(cmd_trace, it_has_the_last_packets_and_outlives_the_asking_program)
{
	int program = attach(), fd = message_connect(path);
	uint32_t handle, qpn = make_qp(program, &handle);

	pass(qpn, 0);
	cr_assert_eq(trace(fd, TRACE_START, qpn, PACKETS), 0);
	close(fd);
	fd = message_connect(path);
	expect_marks(fd, 0, 0);
	for (uint8_t i = 1; i <= 3; i++) {
		pass(qpn ^ 0x10, 100);
		pass(qpn, i);
	}
	expect_marks(fd, 1, 3);
	for (uint8_t i = 4; i <= 9; i++)
		pass(qpn, i);
	expect_marks(fd, 6, PACKETS);
	cr_expect_eq(reply.qpn, qpn);
	cr_expect_eq(reply.peer_qpn, 0);
	cr_expect_eq(reply.packets, PACKETS);
	cr_expect_eq(reply.seen, 9);
	cr_expect_eq(ask_handle(program, COMMAND_DESTROY_QP, handle, NULL), 0);
	expect_marks(fd, 6, PACKETS);
	cr_expect_eq(trace(fd, TRACE_STOP, 0, 0), 0);
	cr_expect_eq(trace(fd, TRACE_READ, 0, 0), ENOENT);
	pass(qpn, 10);
	close(fd);
	close(program);
	expect_serving();
}

static int begin_capture(int fd)
{
	struct request_capture q = { .snap = 64, .ring = LIMIT_CAPTURE_RING_MIN };
	struct carrier_descriptors file = { 0 };
	struct reply_capture r;
	int error = ask(fd, COMMAND_CAPTURE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &file);

	if (file.count > 0)
		close(file.fd[0]);
	return error;
}

/* Either may come first, and either may go first. */
Test(cmd_trace, beside_a_capture)
{
	int program = attach(), fd = message_connect(path), capture = message_connect(path);
	uint32_t handle, qpn = make_qp(program, &handle);

	cr_assert_eq(begin_capture(capture), 0);
	cr_assert_eq(trace(fd, TRACE_START, qpn, PACKETS), 0);
	pass(qpn, 1);
	close(capture);
	for (int i = 0; i < 2000; i++) { /* its end is noticed */
		capture = message_connect(path);
		if (begin_capture(capture) == 0)
			break;
		close(capture);
		capture = -1;
		usleep(10000);
	}
	cr_assert_geq(capture, 0);
	pass(qpn, 2);
	expect_marks(fd, 1, 2);
	cr_expect_eq(trace(fd, TRACE_STOP, 0, 0), 0);
	pass(qpn, 3);
	close(capture);
	close(fd);
	close(program);
	expect_serving();
}

/* A trace that an engine keeps is freed when the engine is destroyed (the sanitizers look). */
Test(cmd_trace, the_engine_may_end_first)
{
	int program = attach(), fd = message_connect(path);
	uint32_t handle, qpn = make_qp(program, &handle);

	cr_assert_eq(trace(fd, TRACE_START, qpn, PACKETS), 0);
	pass(qpn, 1);
	close(fd);
	close(program);
}
