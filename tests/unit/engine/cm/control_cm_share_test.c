/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs of one user take all connections of the connection manager that they can get. The
 * engine is a real one, with a limit small enough to be reached. Another user still gets a share
 * (hostile H-122).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm_rig.h"
#include "control/cm/cm_manager.h"

#define GREEDY	 65533
#define PROGRAMS 2
#define MOST	 64u /* of the engine */
#define SHARE	 (MOST - MOST / 4) /* of one user */
#define PORT	 7471u
#define NO_PORT	 7472u /* nobody listens there */

static struct users *users;

static void begin(void)
{
	control_rig_open();
	users = &((struct engine *)engine)->control->users;
	users->limit[RESOURCE_CM_LINKS] = MOST;
}

TestSuite(control_cm_share, .init = begin, .fini = control_rig_close, .timeout = 120);

/* The programs ask one after the other, until each is refused. An id keeps its connection. */
static uint8_t take_all(void)
{
	uint8_t taken = 0;

	for (uint32_t i = 0; i < PROGRAMS; i++) {
		struct party p;
		int error = 0;

		party_begin(&p);
		for (uint32_t k = 0; error == 0 && k <= MOST; k++) {
			uint32_t id = id_towards(&p, UDP, NO_PORT);

			error = cm_connect_as(&p, COMMAND_CM_CONNECT, id, 0, NULL);
			taken += error == 0;
			if (error == 0)
				expect_event(&p, UNREACHABLE, 1, NULL);
		}
		if (error != ENOMEM)
			return 0;
	}
	return taken;
}

/* A process of that user, which keeps its connections until it is killed. */
static pid_t taker(uid_t uid, uint8_t *taken)
{
	int done[2];
	pid_t pid;

	cr_assert_eq(pipe(done), 0);
	pid = fork();
	if (pid == 0) {
		/* its memory is its own to show again */
		if (setgid(uid) != 0 || setuid(uid) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0 ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
			_exit(1);
		*taken = take_all();
		if (write(done[1], taken, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(done[1]);
	cr_assert_eq(read(done[0], taken, 1), 1, "the process of user %u failed", uid);
	close(done[0]);
	return pid;
}

static uint64_t charged(void)
{
	struct engine *e = (struct engine *)engine;
	uint64_t n;

	pthread_mutex_lock(&e->control_lock);
	n = users->all[RESOURCE_CM_LINKS];
	cr_expect_eq(n, cm_link_count(e), "each connection is charged, and nothing else");
	pthread_mutex_unlock(&e->control_lock);
	return n;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* hostile H-122: as many connections as can be had, by programs whose ids would be enough for all. */
Test(control_cm_share, another_user_gets_its_share)
{
	struct party server, client;
	uint8_t taken;
	pid_t greedy;
	int error;

	if (geteuid() != 0)
		cr_skip_test("another user is wanted");
	cr_assert_eq(chmod(path, 0666), 0);
	greedy = taker(GREEDY, &taken);
	party_begin(&server);
	party_begin(&client);
	listener_at(&server, TCP, PORT, 5);
	error = cm_connect_as(&client, COMMAND_CM_CONNECT, id_towards(&client, TCP, PORT), 0x55,
			      NULL);
	cr_expect_eq(error, 0, "another user: %s", strerror(error));
	if (error == 0)
		expect_event(&server, CONNECT_REQUEST, 0, NULL);
	cr_expect_eq(taken, SHARE, "%u", taken);
	cr_expect_eq(charged(), SHARE + 2u);
	end(greedy);
	for (int ms = 0; charged() > 2; ms++) {
		cr_assert_lt(ms, ENOUGH_MS, "what the other had is not given back");
		poll(NULL, 0, 1);
	}
	party_end(&client);
	party_end(&server);
}

/* Charged as long as it lasts: its id is gone, its numbers rest. */
Test(control_cm_share, a_connection_outlives_its_id)
{
	struct reply_cm_event e;
	struct party p;
	uint32_t id;

	party_begin(&p);
	listener_at(&p, TCP, PORT, 5);
	id = id_towards(&p, TCP, PORT);
	cr_assert_eq(cm_connect_as(&p, COMMAND_CM_CONNECT, id, 0x55, NULL), 0);
	expect_event(&p, CONNECT_REQUEST, 0, &e);
	cr_assert_eq(cm_connect_as(&p, COMMAND_CM_ACCEPT, e.id, 0x56, NULL), 0);
	expect_event(&p, CONNECT_RESPONSE, 0, NULL);
	cr_assert_eq(cm_destroy(&p, id, NULL), 0);
	cr_assert_eq(cm_destroy(&p, e.id, NULL), 0);
	party_end(&p);
	for (int ms = 0; charged() > 0; ms++) {
		cr_assert_lt(ms, ENOUGH_MS, "a connection does not end");
		poll(NULL, 0, 1);
	}
}

/* A program's own requests to a host are not that host's. */
Test(control_cm_share, own_requests_leave_the_peers_room)
{
	struct engine *e = (struct engine *)engine;
	struct party p;

	party_begin(&p);
	listener_at(&p, TCP, PORT, 5);
	cr_assert_eq(cm_connect_as(&p, COMMAND_CM_CONNECT, id_towards(&p, TCP, PORT), 0x55, NULL),
		     0);
	expect_event(&p, CONNECT_REQUEST, 0, NULL);
	pthread_mutex_lock(&e->control_lock);
	cr_expect_eq(cm_link_count(e), 2);
	for (uint32_t i = 0; i < CM_BUCKETS; i++)
		cr_expect_eq(e->control->cm->by_source[i], 0);
	pthread_mutex_unlock(&e->control_lock);
	party_end(&p);
}
