/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket as friend and foe use it. Each test has an engine of its own.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "lcore/lcore.h"
#include "rig/control_rig.h"

TestSuite(control, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

/* ---- objects ---- */

struct coming {
	uint32_t seen, done; /* atomic */
};

/* The first ones stay until they were seen. */
static void *come_and_go(void *arg)
{
	struct coming *c = arg;

	for (int i = 0; i < 300; i++) {
		int fd = attach();
		struct objects o;

		make_objects(fd, &o);
		for (int ms = 0; !__atomic_load_n(&c->seen, __ATOMIC_ACQUIRE) && ms < ENOUGH_MS;
		     ms++)
			poll(NULL, 0, 1);
		close(fd);
	}
	__atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* hostile H-115: statistics are read while the counted objects go away. */
Test(control, statistics_while_objects_go)
{
	struct reply_statistics s;
	uint32_t most = 0;
	struct coming c = { 0 };
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, come_and_go, &c), 0);
	while (!__atomic_load_n(&c.done, __ATOMIC_ACQUIRE)) {
		statistics(&s);
		most = s.qps > most ? s.qps : most;
		if (most > 0)
			__atomic_store_n(&c.seen, 1, __ATOMIC_RELEASE);
		usleep(50); /* a mutex is not fair: the control thread needs it, too */
	}
	pthread_join(thread, NULL);
	cr_expect_geq(most, 1, "none was seen");
	cr_expect_leq(most, 300, "%u queue pairs", most);
	expect_counts(0, 0, 0, 0);
	expect_serving();
}

/* hostile H-130: objects in use. */
Test(control, objects_in_use_are_busy)
{
	int fd = attach();
	struct objects o;

	make_objects(fd, &o);
	expect_counts(1, 1, 1, 1);
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_PD, o.pd, NULL), EBUSY);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_CQ, o.cq, NULL), EBUSY);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_CHANNEL, o.channel, NULL), EBUSY);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_QP, o.qp, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_PD, o.pd, NULL), EBUSY, "the region");
	cr_expect_eq(ask_handle(fd, COMMAND_DEREG_MR, o.mr, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_CHANNEL, o.channel, NULL), EBUSY);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_CQ, o.cq, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_CHANNEL, o.channel, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_PD, o.pd, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_PD, o.pd, NULL), EINVAL, "twice");
	expect_counts(1, 0, 0, 0);
	close(fd);
	expect_counts(0, 0, 0, 0);
}

/* hostile H-123: what a program leaves. Its lcore would look at a queue pair that is freed. */
Test(control, a_program_that_ends_leaves_its_only_group)
{
	struct request_mcast q = { .group = { { [10] = 0xff, 0xff, 239, 1, 2, 3 } } };
	struct request_create_qp ud;
	struct reply_create_qp made;
	struct reply_empty r;
	struct objects o;
	int fd = attach();

	make_objects(fd, &o);
	ud = small_qp(&o);
	ud.type = QP_TYPE_UD;
	cr_assert_eq(create_qp(fd, &ud, &made), 0);
	q.qp = made.handle;
	cr_assert_eq(ask(fd, COMMAND_ATTACH_MCAST, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		     0);
	cr_assert_not_null(mcast_find((struct engine *)(void *)engine, &q.group));
	close(fd);
	expect_counts(0, 0, 0, 0);
	cr_expect_null(mcast_find((struct engine *)(void *)engine, &q.group));
}

static uint64_t polls(void)
{
	struct reply_statistics s = { 0 };

	statistics(&s);
	return s.polls;
}

/* A look at everything now and then, but no turns one after the other. */
static void await_sleep(void)
{
	struct timespec moment = { .tv_nsec = 5 * 1000 * 1000 };

	for (uint32_t i = 0; i < ENOUGH_MS / 5; i++) {
		uint64_t before = polls();

		nanosleep(&moment, NULL);
		if (polls() - before <= 4)
			return;
	}
	cr_assert_fail("the lcore does not go to sleep");
}

static void make_and_destroy(int fd, const struct objects *o)
{
	struct request_create_qp q = { .pd = o->pd,
				       .send_cq = o->cq,
				       .recv_cq = o->cq,
				       .type = QP_TYPE_RC,
				       .max_send_wr = 1,
				       .max_send_sge = 1 };
	struct reply_create_qp r;

	cr_assert_eq(create_qp(fd, &q, &r), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_QP, r.handle, NULL), 0);
}

/*
 * The lcore wakes ten times a second by itself, and what it finds to do then keeps it awake for a
 * while: some of the short moments have none of that in them, however busy the machine is.
 */
Test(control, what_is_set_up_wakes_no_lcore)
{
	const uint32_t moments = 5, most = 200, rounds = 10;
	uint32_t quiet = 0;
	int fd = attach();
	struct objects o;

	make_objects(fd, &o);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_QP, o.qp, NULL), 0);
	for (uint32_t m = 0; m < most && quiet < moments; m++) {
		uint64_t before;

		await_sleep();
		before = polls();
		for (uint32_t i = 0; i < rounds; i++)
			make_and_destroy(fd, &o);
		quiet += polls() - before < rounds;
	}
	cr_expect_eq(quiet, moments, "only in %u of %u moments", quiet, most);
	close(fd);
}

/* hostile H-117: handles of others. */
Test(control, handles_of_others_are_unknown)
{
	int a = attach(), b = attach();
	struct request_create_qp q = { .type = QP_TYPE_RC };
	struct reply_create_qp r;
	struct objects o;
	uint32_t h;

	make_objects(a, &o);
	for (uint32_t guess = 0; guess < 70; guess++) {
		cr_expect_eq(ask_handle(b, COMMAND_DESTROY_QP, guess, NULL), EINVAL);
		cr_expect_eq(ask_handle(b, COMMAND_QUERY_QP, guess, NULL), EINVAL);
		cr_expect_eq(ask_handle(b, COMMAND_DESTROY_CQ, guess, NULL), EINVAL);
		cr_expect_eq(ask_handle(b, COMMAND_DEREG_MR, guess, NULL), EINVAL);
		cr_expect_eq(ask_handle(b, COMMAND_DEALLOC_PD, guess, NULL), EINVAL);
		cr_expect_eq(ask_handle(b, COMMAND_CLOSE_CONTEXT, guess, NULL), EINVAL);
		cr_expect_eq(ask_handle(b, COMMAND_DESTROY_CHANNEL, guess, NULL), EINVAL);
		cr_expect_eq(ask_handle(b, COMMAND_ALLOC_PD, guess, &h), EINVAL);
		cr_expect_eq(reg_mr(b, guess, 0, 8, &h), EINVAL);
		q.pd = q.send_cq = q.recv_cq = guess;
		cr_expect_eq(create_qp(b, &q, &r), EINVAL);
	}
	expect_counts(2, 1, 1, 1);
	close(a);
	close(b);
	expect_counts(0, 0, 0, 0);
}

/* hostile H-107: sizes that may not be. */
Test(control, arguments_out_of_range_are_named)
{
	int fd = attach();
	struct objects o;
	uint32_t h;
	static const struct {
		size_t offset;
		uint32_t value;
		const char *says;
	} caps[] = {
		{ offsetof(struct request_create_qp, max_send_wr), LIMIT_QP_WR + 1, "max_send_wr" },
		{ offsetof(struct request_create_qp, max_recv_wr), UINT32_MAX, "max_recv_wr" },
		{ offsetof(struct request_create_qp, max_send_sge), LIMIT_SGE + 1, "max_send_sge" },
		{ offsetof(struct request_create_qp, max_recv_sge), 1u << 31, "max_recv_sge" },
		{ offsetof(struct request_create_qp, max_inline), LIMIT_INLINE + 1, "max_inline" },
	};

	make_objects(fd, &o);
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		struct request_create_qp q = {
			.type = QP_TYPE_RC, .pd = o.pd, .send_cq = o.cq, .recv_cq = o.cq
		};
		struct reply_create_qp r;

		memcpy((char *)&q + caps[i].offset, &caps[i].value, 4);
		cr_expect_eq(create_qp(fd, &q, &r), EINVAL);
		cr_expect_not_null(strstr(r.h.why, caps[i].says), "why: %s", r.h.why);
	}
	cr_expect_eq(create_cq(fd, o.context, 0, 0, &h), EINVAL);
	cr_expect_eq(create_cq(fd, o.context, 0, LIMIT_CQE + 1, &h), EINVAL);
	cr_expect_eq(create_cq(fd, o.context, 0, LIMIT_CQE, &h), 0);
	cr_expect_eq(reg_mr(fd, o.pd, 0, 0, &h), EINVAL, "length 0");
	cr_expect_eq(reg_mr(fd, o.pd, 0, UINT64_MAX, &h), EINVAL, "wraps");
	cr_expect_eq(reg_mr(fd, o.pd, ACCESS_REMOTE_WRITE, 8, &h), EINVAL, "without local write");
	cr_expect_eq(reg_mr(fd, o.pd, 1u << 30, 8, &h), EINVAL, "an unknown flag");
	close(fd);
	expect_counts(0, 0, 0, 0);
}

static int resize_cq(int fd, uint32_t cq, uint32_t cqe)
{
	struct request_resize_cq q = { .cq = cq, .cqe = cqe };
	struct reply_create_cq r;
	int error = ask(fd, COMMAND_RESIZE_CQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0)
		cr_assert_geq(r.cqe, cqe);
	return error;
}

static int modify_cq(int fd, uint32_t cq, uint32_t count, uint32_t period)
{
	struct request_modify_cq q = { .cq = cq, .count = count, .period = period };
	struct reply_empty r;

	return ask(fd, COMMAND_MODIFY_CQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

Test(control, completion_queues_change_within_bounds)
{
	static const struct {
		const char *what;
		bool moderates;
		uint32_t a, b; /* cqe; count and period */
		int error;
	} cases[] = {
		{ "no entries", false, 0, 0, EINVAL },
		{ "too many entries", false, LIMIT_CQE + 1, 0, EINVAL },
		{ "far too many", false, UINT32_MAX, 0, EINVAL },
		{ "as many as can be", false, LIMIT_CQE, 0, 0 },
		{ "the same again", false, LIMIT_CQE, 0, 0 },
		{ "one", false, 1, 0, 0 },
		{ "a count that is too large", true, LIMIT_MODERATION + 1, 0, EINVAL },
		{ "a period that is too large", true, 0, UINT32_MAX, EINVAL },
		{ "the largest", true, LIMIT_MODERATION, LIMIT_MODERATION, 0 },
	};
	int fd = attach(), other = attach();
	struct objects o;

	make_objects(fd, &o);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool m = cases[i].moderates;
		uint32_t a = cases[i].a, b = cases[i].b;

		cr_expect_eq(m ? modify_cq(fd, o.cq, a, b) : resize_cq(fd, o.cq, a), cases[i].error,
			     "%s", cases[i].what);
		cr_expect_eq(m ? modify_cq(other, o.cq, a, b) : resize_cq(other, o.cq, a), EINVAL,
			     "%s: of another program", cases[i].what);
	}
	/* a client that never says that it left its old ring, or says so without one */
	for (uint32_t cqe = 1; cqe < 1000; cqe *= 3)
		cr_expect_eq(resize_cq(fd, o.cq, cqe), 0);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(ask_handle(fd, COMMAND_CQ_RING_LEFT, o.cq, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_CQ_RING_LEFT, o.cq + 1, NULL), EINVAL);
	/* one that wakes itself all the time, armed or not, and others */
	for (int i = 0; i < 3; i++)
		cr_expect_eq(ask_handle(fd, COMMAND_WAKE_CQ, o.cq, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_WAKE_CQ, o.cq + 1, NULL), EINVAL);
	cr_expect_eq(ask_handle(other, COMMAND_WAKE_CQ, o.cq, NULL), EINVAL);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_QP, o.qp, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_CQ, o.cq, NULL), 0);
	cr_expect_eq(resize_cq(fd, o.cq, 8), EINVAL, "destroyed");
	cr_expect_eq(modify_cq(fd, o.cq, 0, 0), EINVAL, "destroyed");
	cr_expect_eq(ask_handle(fd, COMMAND_CQ_RING_LEFT, o.cq, NULL), EINVAL, "destroyed");
	cr_expect_eq(ask_handle(fd, COMMAND_WAKE_CQ, o.cq, NULL), EINVAL, "destroyed");
	close(fd);
	close(other);
	expect_counts(0, 0, 0, 0);
}

Test(control, closing_a_context_takes_what_is_in_it)
{
	int fd = attach();
	struct objects a, b;

	make_objects(fd, &a);
	make_objects(fd, &b);
	expect_counts(1, 2, 2, 2);
	cr_assert_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, a.context, NULL), 0);
	expect_counts(1, 1, 1, 1);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_QP, a.qp, NULL), EINVAL);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_QP, b.qp, NULL), 0);
	close(fd);
	expect_counts(0, 0, 0, 0);
}

/* ---- deaths ---- */

/* hostile H-115: statistics while objects go; H-121: a program that is killed or stopped. */
Test(control, end_of_file_reclaims_everything)
{
	int before = count_descriptors();
	struct objects o;

	for (int i = 0; i < 20; i++) {
		int fd = attach();

		make_objects(fd, &o);
		make_objects(fd, &o);
		close(fd);
		expect_counts(0, 0, 0, 0);
	}
	expect_descriptors(before);
}

/*
 * The child's connection stays open in our hands, so only its pidfd tells.
 * hostile H-121: a program that is killed or stopped.
 */
Test(control, death_is_noticed_without_end_of_file)
{
	int pass[2], fd = -1, status;
	struct msghdr m = { 0 };
	char octet = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &octet, 1 };
	struct cmsghdr *c;
	pid_t child;

	m.msg_iov = &iov;
	m.msg_iovlen = 1;
	m.msg_control = space;
	m.msg_controllen = sizeof(space);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pass), 0);
	child = fork();
	if (child == 0) {
		struct objects o;

		fd = attach();
		make_objects(fd, &o);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		sendmsg(pass[1], &m, 0);
		pause();
		_exit(0);
	}
	cr_assert_eq(recvmsg(pass[0], &m, 0), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	expect_counts(1, 1, 1, 1);
	kill(child, SIGKILL);
	expect_counts(0, 0, 0, 0);
	waitpid(child, &status, 0);
	close(fd);
	close(pass[0]);
	close(pass[1]);
	expect_serving();
}

/* ---- messages of any shape ---- */

/*
 * Saying HELLO takes an engine milliseconds. A message that is too short is refused before anybody asks
 * who sent it (otherwise the answer would be EPERM), so only the last of those comes from a client.
 *
 * hostile H-119: any message.
 */
Test(control, every_length_of_every_command, .timeout = 300)
{
	int before = count_descriptors();
	uint8_t octets[LIMIT_COMMAND_BYTES] = { 0 };
	struct command_request *h = (struct command_request *)octets;
	struct command_reply reply;

	for (uint32_t what = 0; what < COMMAND_COUNT; what++) {
		size_t right = request_size(what);

		for (size_t length = 1; length <= right + 9; length++) {
			bool stranger = what == COMMAND_HELLO || length + 1 < right;
			int fd = stranger ? message_connect(path) : attach();
			int error;

			*h = (struct command_request){ .magic = COMMAND_MAGIC,
						       .version = COMMAND_VERSION,
						       .command = (uint16_t)what,
						       .length = (uint32_t)length };
			error = throw_at(fd, octets, length, NULL, 0, &reply);
			if (length != right)
				cr_expect_eq(error, EPROTO, "%u: %zu octets: %d", what, length,
					     error);
			close(fd);
		}
		h->length = (uint32_t)right + 1;
		int fd = message_connect(path);

		cr_expect_eq(throw_at(fd, octets, right, NULL, 0, &reply), EPROTO,
			     "a length that is not the message's");
		close(fd);
	}
	expect_counts(0, 0, 0, 0);
	expect_descriptors(before);
	expect_serving();
}

/*
 * Before HELLO there is no arena and no client: commands that need them are refused, and nothing is
 * touched. hostile H-148: commands before HELLO.
 */
Test(control, every_command_before_hello)
{
	uint8_t octets[LIMIT_COMMAND_BYTES] = { 0 };
	struct command_request *h = (struct command_request *)octets;
	struct command_reply reply;
	uint32_t refused = 0;

	for (uint32_t what = 0; what < COMMAND_COUNT; what++) {
		size_t length = request_size(what);
		int fd = message_connect(path), error;

		memset(octets + sizeof(*h), 0xff, sizeof(octets) - sizeof(*h));
		*h = (struct command_request){ .magic = COMMAND_MAGIC,
					       .version = COMMAND_VERSION,
					       .command = (uint16_t)what,
					       .length = (uint32_t)length };
		error = throw_at(fd, octets, length, NULL, 0, &reply);
		refused += error == EPERM;
		if (error == EPERM)
			cr_expect_not_null(strstr(reply.why, "HELLO"), "%u: %s", what, reply.why);
		close(fd);
	}
	cr_expect_geq(refused, COMMAND_COUNT - 12, "%u of %u", refused, COMMAND_COUNT);
	expect_counts(0, 0, 0, 0);
	expect_serving();
}

/* hostile H-145: a command that does not exist. */
Test(control, wrong_headers_are_explained)
{
	struct request_empty q = { { COMMAND_MAGIC, COMMAND_VERSION + 1, COMMAND_DEVICE, sizeof(q),
				     9 } };
	struct command_reply reply;
	int fd = message_connect(path);

	cr_expect_eq(throw_at(fd, &q, sizeof(q), NULL, 0, &reply), EPROTO);
	cr_expect_not_null(strstr(reply.why, "the engine has protocol version"), "why: %s",
			   reply.why);
	cr_expect_eq(reply.sequence, 9);
	cr_expect_eq(recv(fd, &reply, sizeof(reply), 0), 0, "the connection ends");
	close(fd);
	fd = message_connect(path);
	q.h.version = COMMAND_VERSION;
	q.h.command = COMMAND_COUNT;
	cr_expect_eq(throw_at(fd, &q, sizeof(q), NULL, 0, &reply), EOPNOTSUPP);
	q.h.command = COMMAND_OPEN_CONTEXT;
	cr_expect_eq(throw_at(fd, &q, sizeof(q), NULL, 0, &reply), EPERM, "before hello");
	q.h.magic = 0;
	cr_expect_eq(throw_at(fd, &q, sizeof(q), NULL, 0, &reply), EPROTO);
	close(fd);
	expect_serving();
}

/* hostile H-119: any message. */
Test(control, hello_takes_only_the_programs_memory)
{
	int before = count_descriptors();
	int pipes[2];
	struct {
		const char *what;
		int fd;
	} wrong[] = {
		{ "a file of /proc", open("/proc/self/maps", O_RDONLY) },
		{ "mem that cannot be written", open("/proc/self/mem", O_RDONLY) },
		{ "a folder", open("/tmp", O_RDONLY) },
		{ "a device", open("/dev/null", O_RDWR) },
		{ "a memfd", memfd_create("mem", 0) },
		{ "a socket", socket(AF_UNIX, SOCK_STREAM, 0) },
		{ "a pipe", pipe(pipes) == 0 ? pipes[0] : -1 },
	};
	struct request_hello q = { { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_HELLO, sizeof(q),
				     1 } };
	struct command_reply reply;
	int many[40];
	int fd;

	message_prove(q.proof);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		fd = message_connect(path);
		cr_expect_eq(throw_at(fd, &q, sizeof(q), &wrong[i].fd, 1, &reply), EPROTO, "%s",
			     wrong[i].what);
		close(fd);
	}
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = open("/proc/self/mem", O_RDWR);
	for (uint32_t n = 2; n <= ARRAY_SIZE(many); n++) {
		int error;

		fd = message_connect(path);
		error = throw_at(fd, &q, sizeof(q), many, n, &reply);
		cr_expect(error == EPROTO || error == -1, "%u descriptors: %d", n, error);
		close(fd);
	}
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		close(many[i]);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		close(wrong[i].fd);
	close(pipes[1]);
	expect_counts(0, 0, 0, 0);
	expect_descriptors(before);
	expect_serving();
}
