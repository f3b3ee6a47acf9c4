/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of objects, and captures: who sees what, and that parts of a list make the whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "config/limits.h"
#include "control_rig.h"
#include "queue/capture_ring.h"

#define NOBODY 65534

TestSuite(control_list, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

static size_t reply_size(enum command what)
{
	return what == COMMAND_QP_LIST	      ? sizeof(struct reply_qp_list)
	       : what == COMMAND_MR_LIST      ? sizeof(struct reply_mr_list)
	       : what == COMMAND_PROGRAM_LIST ? sizeof(struct reply_program_list)
					      : sizeof(struct reply_neighbour_list);
}

/* How many entries the list has, in however many parts. */
static uint32_t count(int fd, enum command what)
{
	struct request_list q = { .from = 0 };
	union {
		struct {
			struct command_reply h;
			uint64_t next;
			uint32_t count;
		} list;
		uint8_t octets[LIMIT_COMMAND_BYTES];
	} r;
	uint32_t n = 0;
	size_t size = reply_size(what);

	do {
		cr_assert_eq(ask(fd, what, &q.h, sizeof(q), &r.list.h, size, NULL, NULL), 0);
		cr_assert(r.list.next == 0 || r.list.next > q.from);
		n += r.list.count;
		q.from = r.list.next;
	} while (q.from != 0);
	return n;
}

Test(control_list, parts_make_the_whole)
{
	struct objects o;
	struct request_create_qp q = {
		.type = 2, .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1
	};
	struct reply_create_qp r;
	int fd = attach();
	uint32_t handle;

	make_objects(fd, &o);
	q.pd = o.pd;
	q.send_cq = q.recv_cq = o.cq;
	for (int i = 0; i < 3 * (int)LISTED_QPS; i++) {
		cr_assert_eq(create_qp(fd, &q, &r), 0);
		cr_assert_eq(reg_mr(fd, o.pd, 1, 4096, &handle), 0);
	}
	cr_expect_eq(count(fd, COMMAND_QP_LIST), 3 * LISTED_QPS + 1);
	cr_expect_eq(count(fd, COMMAND_MR_LIST), 3 * LISTED_QPS + 1);
	cr_expect_eq(count(fd, COMMAND_PROGRAM_LIST), 1);
	cr_expect_eq(count(fd, COMMAND_NEIGHBOUR_LIST), 0, "there is no port");
	close(fd);
}

Test(control_list, an_entry_says_what_the_object_is)
{
	struct request_list q = { .from = 0 };
	struct reply_program_list p;
	struct reply_qp_list l;
	struct reply_mr_list m;
	struct objects o;
	int fd = attach();

	make_objects(fd, &o);
	cr_assert_eq(ask(fd, COMMAND_QP_LIST, &q.h, sizeof(q), &l.h, sizeof(l), NULL, NULL), 0);
	cr_expect_eq(l.qp[0].pid, (uint32_t)getpid());
	cr_expect_eq(l.qp[0].uid, (uint32_t)getuid());
	cr_expect_eq(l.qp[0].state, QP_STATE_RESET);
	cr_expect_eq(l.qp[0].way, LISTED_NOWHERE);
	cr_assert_eq(ask(fd, COMMAND_MR_LIST, &q.h, sizeof(q), &m.h, sizeof(m), NULL, NULL), 0);
	cr_expect_eq(m.mr[0].address, (uint64_t)(uintptr_t)memory);
	cr_expect_neq(m.mr[0].key, 0);
	cr_expect_eq(m.mr[0].reach, LISTED_PEER);
	cr_assert_eq(ask(fd, COMMAND_PROGRAM_LIST, &q.h, sizeof(q), &p.h, sizeof(p), NULL, NULL),
		     0);
	cr_expect_eq(p.program[0].qps, 1);
	cr_expect_eq(p.program[0].mrs, 1);
	cr_expect_eq(p.program[0].contexts, 1);
	close(fd);
}

/* A position that nobody gave: the end of the list, or a part of it; never what is not there. */
Test(control_list, any_position_is_answered)
{
	static const uint64_t from[] = { 1, UINT32_MAX, UINT64_MAX, UINT64_C(5) << 32 | 7 };
	static const enum command lists[] = { COMMAND_QP_LIST, COMMAND_MR_LIST,
					      COMMAND_PROGRAM_LIST, COMMAND_NEIGHBOUR_LIST };
	struct objects o;
	int fd = attach();

	make_objects(fd, &o);
	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
			struct request_list q = { .from = from[i] };
			uint8_t octets[LIMIT_COMMAND_BYTES] __attribute__((aligned(8)));

			cr_expect_eq(ask(fd, lists[k], &q.h, sizeof(q),
					 (struct command_reply *)octets, reply_size(lists[k]), NULL,
					 NULL),
				     0);
		}
	expect_serving();
	close(fd);
}

/* In a process of another user. */
static void as_nobody(int (*check)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("not root: there is no other user");
	cr_assert_eq(chmod(path, 0666), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
			_exit(100);
		_exit(check());
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned int)status);
}

static int sees_nothing(void)
{
	int fd = message_connect(path);

	return fd < 0					? 1
	       : count(fd, COMMAND_QP_LIST) != 0	? 2
	       : count(fd, COMMAND_MR_LIST) != 0	? 3
	       : count(fd, COMMAND_PROGRAM_LIST) != 0	? 4
	       : count(fd, COMMAND_NEIGHBOUR_LIST) != 0 ? 5
							: 0;
}

Test(control_list, strangers_see_no_objects)
{
	struct objects o;
	int fd = attach();

	make_objects(fd, &o);
	as_nobody(sees_nothing);
	cr_expect_eq(count(fd, COMMAND_QP_LIST), 1);
	close(fd);
}

/* ---- captures ---- */

/* The reply's errno; the file in *file. */
static int begin_capture(int fd, uint32_t snap, uint32_t ring, int *file)
{
	struct request_capture q = { .snap = snap, .ring = ring };
	struct carrier_descriptors out = { 0 };
	struct reply_capture r;
	int error = ask(fd, COMMAND_CAPTURE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out);

	*file = out.count > 0 ? out.fd[0] : -1;
	return error;
}

static int capture_is_refused(void)
{
	int fd = message_connect(path), file;

	return fd >= 0 && begin_capture(fd, 64, LIMIT_CAPTURE_RING_MIN, &file) == EPERM && file < 0
		       ? 0
		       : 1;
}

Test(control_list, strangers_capture_nothing)
{
	as_nobody(capture_is_refused);
}

Test(control_list, one_capture_at_a_time)
{
	int first = message_connect(path), second = message_connect(path), file, other;
	struct stat st;

	cr_assert_eq(begin_capture(first, 64, LIMIT_CAPTURE_RING_MIN, &file), 0);
	cr_assert_eq(fstat(file, &st), 0);
	cr_expect_eq((size_t)st.st_size, capture_octets(1, LIMIT_CAPTURE_RING_MIN));
	cr_expect_neq(ftruncate(file, 0), 0, "an lcore would die of a file that is cut");
	cr_expect_eq(begin_capture(second, 64, LIMIT_CAPTURE_RING_MIN, &other), EBUSY);
	close(file);
	close(first);
	for (int i = 0; i < 1000; i++) { /* the engine hears of its end */
		if (begin_capture(second, 64, LIMIT_CAPTURE_RING_MIN, &other) == 0)
			break;
		usleep(10000);
	}
	cr_expect_geq(other, 0);
	close(other);
	close(second);
	expect_serving();
}

Test(control_list, wrong_captures_are_refused)
{
	static const uint32_t wrong[][2] = {
		{ LIMIT_CAPTURE_SNAP_MIN - 1, LIMIT_CAPTURE_RING_MIN },
		{ LIMIT_CAPTURE_SNAP + 1, LIMIT_CAPTURE_RING_MIN },
		{ 64, LIMIT_CAPTURE_RING_MIN - 1 },
		{ 64, LIMIT_CAPTURE_RING_MIN + 1 },
		{ 64, 2 * LIMIT_CAPTURE_RING_MAX },
		{ 64, 0 },
	};
	int fd = message_connect(path), file;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		cr_expect_eq(begin_capture(fd, wrong[i][0], wrong[i][1], &file), EINVAL, "%zu", i);
		cr_expect_lt(file, 0);
	}
	cr_expect_eq(begin_capture(fd, 64, LIMIT_CAPTURE_RING_MIN, &file), 0);
	close(file);
	close(fd);
}
