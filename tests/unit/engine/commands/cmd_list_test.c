/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of objects: who sees what, and that parts of a list make the whole. */
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "config/limits.h"
#include "control/control.h"
#include "control/network/destinations.h"
#include "rig/control_rig.h"
#include "lcore/inside.h"

TestSuite(cmd_list, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

static size_t reply_size(enum command what)
{
	return what == COMMAND_QP_LIST	      ? sizeof(struct reply_qp_list)
	       : what == COMMAND_MR_LIST      ? sizeof(struct reply_mr_list)
	       : what == COMMAND_PROGRAM_LIST ? sizeof(struct reply_program_list)
	       : what == COMMAND_PATH_LIST    ? sizeof(struct reply_path_list)
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

Test(cmd_list, parts_make_the_whole)
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
	cr_expect_eq(count(fd, COMMAND_PATH_LIST), 0);
	close(fd);
}

Test(cmd_list, an_entry_says_what_the_object_is)
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
	cr_expect_eq(l.qp[0].type, QP_TYPE_RC);
	cr_expect_str_eq(l.qp[0].program, "control_test");
	cr_assert_eq(ask(fd, COMMAND_MR_LIST, &q.h, sizeof(q), &m.h, sizeof(m), NULL, NULL), 0);
	cr_expect_eq(m.mr[0].address, (uint64_t)(uintptr_t)memory);
	cr_expect_neq(m.mr[0].key, 0);
	cr_expect_eq(m.mr[0].length, sizeof(memory));
	cr_expect_eq(m.mr[0].access, ACCESS_LOCAL_WRITE);
	cr_expect_eq(m.mr[0].reach, LISTED_PEER);
	cr_assert_eq(ask(fd, COMMAND_PROGRAM_LIST, &q.h, sizeof(q), &p.h, sizeof(p), NULL, NULL),
		     0);
	cr_expect_eq(p.program[0].qps, 1);
	cr_expect_eq(p.program[0].mrs, 1);
	cr_expect_eq(p.program[0].contexts, 1);
	cr_expect_eq(p.program[0].pds, 1);
	cr_expect_eq(p.program[0].cqs, 1);
	cr_expect_gt(p.program[0].memory, 0);
	cr_expect_str_eq(p.program[0].program, "control_test");
	close(fd);
}

/* A program's objects, then those of the next program: each once, whoever owns them. */
Test(cmd_list, a_list_goes_on_in_the_next_program)
{
	struct request_create_qp q = {
		.type = QP_TYPE_UC, .max_send_wr = 1, .max_send_sge = 1, .max_recv_sge = 1
	};
	struct request_list from = { .from = 0 };
	int fd[3] = { attach(), attach(), attach() };
	uint32_t seen[3 * LISTED_QPS], n = 0;
	struct reply_create_qp made;
	struct reply_qp_list l;
	struct objects o;

	for (int i = 0; i < 3; i++) {
		make_objects(fd[i], &o);
		q.pd = o.pd;
		q.send_cq = q.recv_cq = o.cq;
		for (uint32_t k = 1; k < LISTED_QPS - 5; k++)
			cr_assert_eq(create_qp(fd[i], &q, &made), 0);
	}
	do {
		cr_assert_eq(ask(fd[0], COMMAND_QP_LIST, &from.h, sizeof(from), &l.h, sizeof(l),
				 NULL, NULL),
			     0);
		for (uint32_t i = 0; i < l.count; i++) {
			for (uint32_t k = 0; k < n; k++)
				cr_expect_neq(seen[k], l.qp[i].qpn, "%u twice", l.qp[i].qpn);
			cr_assert_lt(n, 3 * LISTED_QPS);
			seen[n++] = l.qp[i].qpn;
		}
		from.from = l.next;
	} while (l.next != 0);
	cr_expect_eq(n, 3 * (LISTED_QPS - 5));
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

/* The first program's last objects do not fit, and it goes before anybody asks for them. */
Test(cmd_list, a_program_that_goes_between_two_parts_takes_no_others_objects)
{
	int first = attach(), second = attach(), who_asks = attach();
	struct request_list q = { .from = 0 };
	struct reply_mr_list l;
	struct objects o;
	uint32_t handle;

	make_objects(first, &o);
	for (uint32_t i = 0; i < LISTED_MRS; i++)
		cr_assert_eq(reg_mr(first, o.pd, 1, 4096, &handle), 0);
	make_objects(second, &o);
	cr_assert_eq(ask(who_asks, COMMAND_MR_LIST, &q.h, sizeof(q), &l.h, sizeof(l), NULL, NULL),
		     0);
	cr_assert_eq(l.count, LISTED_MRS);
	cr_assert_eq((uint32_t)l.next, LISTED_MRS + 1, "the last one's handle");
	close(first);
	expect_counts(2, 1, 1, 1);
	q.from = l.next;
	cr_assert_eq(ask(who_asks, COMMAND_MR_LIST, &q.h, sizeof(q), &l.h, sizeof(l), NULL, NULL),
		     0);
	cr_expect_eq(l.next, 0);
	cr_assert_eq(l.count, 1, "the second program's");
	cr_expect_eq(l.mr[0].length, sizeof(memory));
	close(second);
	close(who_asks);
}

Test(cmd_list, more_programs_than_one_reply_has)
{
	static int fd[LISTED_PROGRAMS + 3];

	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = attach();
	cr_expect_eq(count(fd[0], COMMAND_PROGRAM_LIST), ARRAY_SIZE(fd));
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

/* Destroyed objects are not listed, and do not end the list. */
Test(cmd_list, handles_in_between_may_be_free)
{
	uint32_t handle[3];
	struct objects o;
	int fd = attach();

	make_objects(fd, &o);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(reg_mr(fd, o.pd, 1, 4096, &handle[i]), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_DEREG_MR, handle[0], NULL), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_DEREG_MR, handle[1], NULL), 0);
	cr_expect_eq(count(fd, COMMAND_MR_LIST), 2);
	close(fd);
}

/*
 * A position that the engine never gave: the end of the list, or a part of it; never objects that
 * do not exist.
 */
Test(cmd_list, any_position_is_answered)
{
	static const uint64_t from[] = { 1, UINT32_MAX, UINT64_MAX, UINT64_C(5) << 32 | 7 };
	static const enum command lists[] = { COMMAND_QP_LIST, COMMAND_MR_LIST,
					      COMMAND_PROGRAM_LIST, COMMAND_NEIGHBOUR_LIST,
					      COMMAND_PATH_LIST };
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

static int sees_nothing(void)
{
	int fd = message_connect(path);

	return fd < 0					? 1
	       : count(fd, COMMAND_QP_LIST) != 0	? 2
	       : count(fd, COMMAND_MR_LIST) != 0	? 3
	       : count(fd, COMMAND_PROGRAM_LIST) != 0	? 4
	       : count(fd, COMMAND_NEIGHBOUR_LIST) != 0 ? 5
	       : count(fd, COMMAND_PATH_LIST) != 0	? 6
							: 0;
}

Test(cmd_list, strangers_see_no_objects)
{
	struct objects o;
	int fd = attach();

	make_objects(fd, &o);
	as_nobody(sees_nothing);
	cr_expect_eq(count(fd, COMMAND_QP_LIST), 1);
	close(fd);
}

static int sees_no_neighbour(void)
{
	int fd = message_connect(path);

	return fd < 0 ? 1 : count(fd, COMMAND_NEIGHBOUR_LIST) != 0 ? 2 : 0;
}

/* Only root and the engine's user learn who talks to whom. The engine has no port, so this is made up. */
Test(cmd_list, strangers_see_no_neighbours)
{
	static const struct qp_path way = {
		.dgid = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9 } },
	};
	struct engine *inside = (struct engine *)engine;
	struct control *control = inside->control;
	static struct engine_qp user;
	enum flow_state state;
	struct mac mac;
	int fd = attach();

	pthread_mutex_lock(&inside->control_lock);
	control->destinations = destinations_new();
	cr_assert_not_null(control->destinations);
	cr_assert_eq(destination_find_way(inside, &way, &state, &mac), 0);
	destination_of_qp(inside, &user, &way);
	pthread_mutex_unlock(&inside->control_lock);
	cr_expect_eq(count(fd, COMMAND_NEIGHBOUR_LIST), 1);
	as_nobody(sees_no_neighbour);
	pthread_mutex_lock(&inside->control_lock);
	destination_leave_qp(&user);
	destinations_free(control->destinations);
	control->destinations = NULL;
	pthread_mutex_unlock(&inside->control_lock);
	close(fd);
}

/* A neighbour with the own address of its way, if the kernel's routes may depend on that address. */
static void expect_from(bool kernel_answers, const struct gid *sgid, const struct gid *from)
{
	struct engine_qp user = { .qpn = 1 };
	struct port port = { .kernel_answers = kernel_answers };
	struct control control = { .destinations = destinations_new() };
	struct engine e = { .port = &port, .control = &control };
	struct qp_path way = { .sgid = *sgid, .dgid = { { 0x20, 1, [15] = 9 } } };
	struct listed_neighbour n = { 0 };
	enum flow_state state;
	uint32_t listed;
	struct mac mac;

	cr_assert_not_null(control.destinations);
	cr_assert_eq(destination_find_way(&e, &way, &state, &mac), 0);
	destination_of_qp(&e, &user, &way);
	cr_expect_eq(destinations_list(control.destinations, 0, &n, 1, &listed), 0);
	cr_expect_eq(listed, 1);
	cr_expect(gid_equal(&n.gid, &way.dgid));
	cr_expect(gid_equal(&n.from, from));
	destination_leave_qp(&user);
	destinations_free(control.destinations);
}

Test(cmd_list, a_neighbour_names_the_own_address_of_its_way)
{
	static const struct gid own = { { 0x20, 1, [15] = 1 } }, any = { { 0 } };

	expect_from(true, &own, &own);
	expect_from(false, &own, &any);
}
