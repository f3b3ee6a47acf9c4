/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors whose close(2) hangs are passed to the engine in every possible way (hostile H-119): other
 * programs are answered as fast as before, and a user who floods is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig/attacker.h"
#include "base/bits.h"
#include "rig/control_rig.h"
#include "rig/holding.h"
#include "rig/porters.h"
#include "lcore/inside.h"
#include "../verbs/rig/starved.h"

#define STALL_MS 200 /* of the engine's own: time for which it could not run is subtracted */
/*
 * For how long others are looked at. What is passed lies in the engine's sockets when the attack begins, and
 * who handles it answers them, too: it holds up one of their first commands, whose end is waited for.
 */
#define WATCH_MS 400
#define FEWEST	 10 /* commands */

TestSuite(control_descriptors, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- how it is passed ---- */

static void send_message(int fd, enum command what, int passed, uint32_t times)
{
	send_with_descriptor(fd, what, request_size(what), passed, times);
}

enum way {
	WITH_HELLO,
	WITH_ANY_COMMAND,
	TOO_MANY,
	UNREAD, /* behind a message that ends the connection, and an empty one */
	AS_MEMORY, /* not at all: it lies where the engine looks at who says HELLO */
};

/* From now on a reader of this program's proof waits for the file. */
static void say_hello_from(int fd, int file)
{
	uint64_t at = message_proof_at();
	struct request_hello q = {
		.h = { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_HELLO, sizeof(q), 7 }, .proof_at = at
	};

	message_prove(q.proof);
	if (mmap((void *)(at & ~4095ul), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		 file, 0) == MAP_FAILED)
		_exit(1);
	send(fd, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void pass(enum way way, int passed)
{
	int fd = message_connect(path);
	uint32_t nonsense = 0;

	switch (way) {
	case WITH_HELLO:
		send_message(fd, COMMAND_HELLO, passed, 1);
		break;
	case WITH_ANY_COMMAND:
		send_message(fd, COMMAND_DEVICE, passed, 1);
		break;
	case TOO_MANY:
		send_message(fd, COMMAND_HELLO, passed, 253);
		break;
	case UNREAD:
		if (send(fd, &nonsense, sizeof(nonsense), MSG_NOSIGNAL) > 0 &&
		    send(fd, &nonsense, 0, MSG_NOSIGNAL) == 0)
			send_message(fd, COMMAND_HELLO, passed, 1);
		break;
	case AS_MEMORY:
		say_hello_from(fd, passed);
		break;
	}
}

static void end_attack(pid_t attacker)
{
	daemons_end();
	kill(attacker, SIGKILL);
	waitpid(attacker, NULL, 0);
}

struct attempt {
	int (*make)(void);
	enum way way;
	int times;
	int ready; /* gets an octet when all is passed */
};

/*
 * Passes it so, `times`, and keeps nothing of it but the connections. This is a thread because the proof
 * lies at the top of the first stack: in every second process the first frames are in the same page, and
 * whoever runs in them would wait for the mute file himself.
 */
static void *be_attacker(void *argument)
{
	const struct attempt *a = argument;
	char octet = 0;
	int fd = -1;

	for (int i = 0; i < a->times; i++) {
		/* another daemon would be held up by the copy that it has of the first file */
		if (fd < 0 || a->make != mute_file)
			fd = a->make();
		if (fd < 0)
			_exit(1);
		pass(a->way, fd);
		if (a->make != mute_file) /* it holds us up as well */
			close(fd);
	}
	if (write(a->ready, &octet, 1) != 1)
		_exit(1);
	for (;;)
		pause();
	return NULL;
}

/* -1: it cannot be made here. */
static pid_t attack(int (*make)(void), enum way way, int times)
{
	static struct attempt attempt;
	int ready[2];
	char octet = 0;
	pid_t pid;

	daemons_share();
	cr_assert_eq(pipe(ready), 0);
	attempt = (struct attempt){ make, way, times, ready[1] };
	/* A passed descriptor is only in flight, once it is served. */
	pthread_mutex_lock(&((struct engine *)engine)->control_lock);
	pid = fork();
	if (pid == 0) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(3, (unsigned int)ready[1] - 1, 0);
		close_range((unsigned int)ready[1] + 1, ~0u, 0); /* the engine's, too */
		if (pthread_create(&thread, NULL, be_attacker, &attempt) != 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &octet, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	pthread_mutex_unlock(&((struct engine *)engine)->control_lock);
	close(ready[0]);
	return pid;
}

/* The longest that a command of somebody else takes meanwhile, in ms. */
static double longest_command(void)
{
	struct request_empty q = { 0 };
	struct reply_device r;
	int64_t end = now_ms() + WATCH_MS;
	struct starved starved;
	uint32_t commands = 0;
	double longest = 0;
	int fd = message_connect(path);

	starved_open(&starved);
	do {
		double took;

		starved_begin(&starved);
		cr_assert_eq(ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
			     0);
		took = starved_command(&starved) * 1e3;
		longest = took > longest ? took : longest;
		poll(NULL, 0, 5);
	} while (++commands < FEWEST || now_ms() < end);
	starved_close(&starved);
	close(fd);
	return longest;
}

static const struct {
	const char *name;
	int (*make)(void);
} kinds[] = {
	{ "a socket that lingers", lingering_socket },
	{ "a file whose file system is mute", mute_file },
	{ "4 GiB of memory", filled_memory },
};

/* The longest that others wait for a command, while the attacker lives and when he is dead. */
static double once(size_t kind, enum way way)
{
	pid_t attacker = attack(kinds[kind].make, way, 1);
	double alive, dead;

	if (attacker < 0)
		cr_skip_test("no such descriptor can be made here");
	alive = longest_command();
	end_attack(attacker);
	dead = longest_command();
	close(attach());
	return alive > dead ? alive : dead;
}

static void attack_with(size_t kind)
{
	static const char *const ways[] = { "with HELLO", "with another command", "too many",
					    "unread" };

	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		double longest = once(kind, (enum way)way);

		cr_expect_lt(longest, STALL_MS, "%s, %s: %.1f ms", kinds[kind].name, ways[way],
			     longest);
	}
}

/* hostile H-119: any descriptors. */
Test(control_descriptors, sockets_that_linger)
{
	attack_with(0);
}

/* hostile H-119: any descriptors. */
Test(control_descriptors, files_of_a_mute_file_system)
{
	attack_with(1);
}

/* hostile H-119: any descriptors. */
Test(control_descriptors, memory_that_takes_long_to_free)
{
	attack_with(2);
}

/*
 * hostile H-119: the program ends with a reply that it did not read, so the kernel tells ECONNRESET before
 * what it sent last.
 */
Test(control_descriptors, a_socket_that_lingers_behind_a_reset)
{
	struct request_empty q = { .h = { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_OPEN_CONTEXT,
					  sizeof(q), 7 } };
	int passed = lingering_socket(), fd = attach();
	struct pollfd reply = { .fd = fd, .events = POLLIN };
	double longest;

	cr_assert_geq(passed, 0);
	/* The reply has descriptors, so the next message waits until it is read. */
	cr_assert_eq(send(fd, &q, sizeof(q), MSG_NOSIGNAL), (ssize_t)sizeof(q));
	cr_assert_eq(poll(&reply, 1, ENOUGH_MS), 1, "no context");
	send_message(fd, COMMAND_DEVICE, passed, 1);
	close(passed);
	expect_serving(); /* the engine has seen the message */
	close(fd);
	longest = longest_command();
	cr_expect_lt(longest, STALL_MS, "%.1f ms", longest);
}

/* ---- against the stream: from the program's end of a channel of events ---- */

#define LINGER_S 3 /* longer than anybody may wait, and not for ever */

static void pass_from_end(int theirs)
{
	const struct linger linger = { 1, LINGER_S };
	int passed = lingering_socket();

	cr_assert_geq(passed, 0);
	cr_assert_eq(setsockopt(passed, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	send_with_descriptor(theirs, COMMAND_DEVICE, request_size(COMMAND_DEVICE), passed, 1);
	close(passed);
}

/* The program's end of a new channel, whose handle replaces that of what it is made of. */
static int make_end(int fd, enum command make, uint32_t *handle)
{
	struct request_handle q = { .handle = *handle };
	struct carrier_descriptors out = { 0 };
	struct reply_handle r;

	cr_assert_eq(ask(fd, make, &q.h, request_size(make), &r.h, sizeof(r), NULL, &out), 0);
	for (uint32_t i = 1; i < out.count; i++)
		close(out.fd[i]);
	*handle = r.handle;
	return out.fd[0];
}

/* The engine closes its end of the channel while another program's commands are measured. */
static void attack_from_end(int fd, enum command make, uint32_t of, enum command destroy)
{
	struct request_handle q = { .h = { COMMAND_MAGIC, COMMAND_VERSION, (uint16_t)destroy,
					   sizeof(q), 7 },
				    .handle = of };
	int theirs = make_end(fd, make, &q.handle);
	double longest;

	pass_from_end(theirs);
	cr_assert_eq(send(fd, &q, sizeof(q), MSG_NOSIGNAL), (ssize_t)sizeof(q));
	longest = longest_command();
	cr_expect_lt(longest, STALL_MS, "%.1f ms", longest);
	close(theirs);
	close(fd);
}

/* hostile H-119: the engine's end may hold descriptors that only its close(2) drops. */
Test(control_descriptors, a_socket_that_lingers_in_a_completion_channel)
{
	int fd = attach();

	attack_from_end(fd, COMMAND_CREATE_CHANNEL, open_context(fd), COMMAND_DESTROY_CHANNEL);
}

/* hostile H-119: the channel of asynchronous events. */
Test(control_descriptors, a_socket_that_lingers_in_a_context)
{
	attack_from_end(attach(), COMMAND_OPEN_CONTEXT, 0, COMMAND_CLOSE_CONTEXT);
}

/* hostile H-119: the channel of connection events. */
Test(control_descriptors, a_socket_that_lingers_in_a_connection_channel)
{
	attack_from_end(attach(), COMMAND_CM_CREATE_CHANNEL, 0, COMMAND_CM_DESTROY_CHANNEL);
}

/* hostile H-119: the engine looks at the memory of a program that says HELLO; it may never answer */
Test(control_descriptors, a_program_whose_memory_is_mute)
{
	pid_t attacker = attack(mute_file, AS_MEMORY, 1);
	double longest;

	if (attacker < 0)
		cr_skip_test("no such file can be made here");
	longest = longest_command();
	cr_expect_lt(longest, STALL_MS, "%.1f ms", longest);
	end_attack(attacker);
	longest = longest_command();
	cr_expect_lt(longest, STALL_MS, "then dead: %.1f ms", longest);
	close(attach());
}

/* hostile H-119: a user who floods is told why the engine does not serve them */
Test(control_descriptors, a_flood_is_refused)
{
	pid_t attacker = attack(mute_file, WITH_ANY_COMMAND, 12);
	struct command_reply reply = { 0 };
	struct pollfd p = { .events = POLLIN };
	double longest;
	int fd, own;

	if (attacker < 0)
		cr_skip_test("no such descriptor can be made here");
	longest = longest_command();
	cr_expect_lt(longest, STALL_MS, "%.1f ms", longest);
	own = open("/dev/null", O_RDONLY);
	p.fd = fd = message_connect(path);
	send_message(fd, COMMAND_DEVICE, own, 1);
	cr_assert_eq(poll(&p, 1, ENOUGH_MS), 1, "neither a reply nor the end came");
	/* The engine may have closed the socket, with the message in it, before we look. */
	if (recv(fd, &reply, sizeof(reply), 0) < 0 && errno == ECONNRESET)
		recv(fd, &reply, sizeof(reply), 0);
	cr_expect(reply.error == EUSERS || reply.error == EPROTO, "%d: %s", reply.error, reply.why);
	expect_serving();
	close(fd);
	close(own);
	end_attack(attacker);
}

/* ---- sockets that wait to be ended ---- */

#define FEW_DESCRIPTORS 600 /* of the engine */
#define MANY_SOCKETS	3000

/* The porters' parent is a child of ours. */
static void open_with_few_descriptors(void)
{
	const struct rlimit few = { FEW_DESCRIPTORS, FEW_DESCRIPTORS };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	control_rig_open();
}

TestSuite(control_drops, .init = open_with_few_descriptors, .fini = control_rig_close,
	  .timeout = 120);

/* A connection with a descriptor in it, closed at once, again and again: true when all were made. */
static bool flood(uint32_t sockets)
{
	int64_t end = now_ms() + ENOUGH_MS;
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		int own, fd;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(3, ~0u, 0);
		own = open("/dev/null", O_RDONLY);
		for (uint32_t i = 0; i < sockets; i++) {
			fd = message_connect(path);
			send_message(fd, COMMAND_DEVICE, own, 1);
			close(fd);
		}
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0 && now_ms() < end)
		poll(NULL, 0, 1);
	if (now_ms() < end)
		return status == 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return false;
}

static void hello(struct taken *t)
{
	uint32_t context;

	try_attach(t, &context);
}

static int ask_on_new_connection(void)
{
	struct request_empty q = { 0 };
	struct reply_device r;
	int fd = message_connect(path), error;

	error = ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
	close(fd);
	return error;
}

static void ask_for_device(struct taken *t)
{
	t->error = ask_on_new_connection();
}

static void expect_another_user_served(void (*how)(struct taken *t))
{
	struct attacker other;
	struct taken t;

	attack_begin(&other, how);
	t = attack_result(&other);
	cr_expect_eq(t.error, 0, "%s: %s", strerror(t.error), t.why);
	attack_end(&other);
}

/* A flood may be faster than processes are made, for a moment. */
static void expect_free_descriptors(void)
{
	int64_t end = now_ms() + ENOUGH_MS;
	int fd;

	while ((fd = dup(0)) < 0 || fd > FEW_DESCRIPTORS / 2) {
		if (fd >= 0)
			close(fd);
		cr_assert_lt(now_ms(), end, "sockets pile up");
		poll(NULL, 0, 1);
	}
	close(fd);
}

/*
 * The last sockets of a flood wait to be accepted when whoever made them has ended: they take descriptors
 * of this process, which the test shares with the engine. Sockets are accepted in the order they came in,
 * so an answer on a new one says that none of them is left to come.
 */
static void expect_flood_over(void)
{
	int64_t end = now_ms() + ENOUGH_MS;

	do {
		cr_assert_lt(now_ms(), end, "the sockets of the flood are never all accepted");
		expect_free_descriptors();
	} while (ask_on_new_connection() != 0);
	expect_free_descriptors();
}

/* All of a user's porters hang: the sockets that he leaves behind are closed nevertheless. */
Test(control_drops, sockets_do_not_pile_up)
{
	pid_t attacker = attack(mute_file, WITH_ANY_COMMAND, 12);
	double longest;

	if (attacker < 0)
		cr_skip_test("no such descriptor can be made here");
	cr_assert(flood(MANY_SOCKETS), "nobody takes connections any more");
	expect_flood_over();
	expect_another_user_served(hello);
	longest = longest_command();
	cr_expect_lt(longest, STALL_MS, "%.1f ms", longest);
	end_attack(attacker);
	expect_serving();
}

/* Nothing closes the sockets: they count for their user, who is refused; other users are not. */
Test(control_drops, sockets_that_wait_are_their_users)
{
	int before = count_descriptors();
	pid_t parent = porters_parent();
	uint32_t sockets = 0;

	cr_assert_eq(kill(parent, SIGSTOP), 0);
	while (ask_on_new_connection() == 0 && sockets < MANY_SOCKETS) {
		cr_assert(flood(16), "nobody takes connections any more");
		sockets += 16;
	}
	cr_expect_lt(sockets, FEW_DESCRIPTORS);
	expect_another_user_served(ask_for_device); /* HELLO needs a porter */
	cr_assert_eq(kill(parent, SIGCONT), 0);
	expect_another_user_served(hello);
	expect_descriptors(before);
	expect_serving();
}
