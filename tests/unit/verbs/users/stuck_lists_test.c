/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of some programs blocks for ever (stuck_attack.h). Nevertheless the engine answers all
 * questions about its objects soon and correctly: the lists behind `uroce stat`, and the program `uroce stat`
 * with each of its views.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/work.h"
#include "config/limits.h"
#include "rig/endpoint.h"
#include "protocol/command.h"
#include "rig/starved.h"
#include "stuck_attack.h"

#define NOBODY	 65534
#define SOMEBODY 1234
#define LOOKS	 20 /* after each event */
#define SLOW	 0.2 /* s of the engine's own, of one part of a list */
#define OUTPUT	 (256u << 10)

static struct endpoint e; /* the observer's */

/* Data that the observer needs, and its findings; both processes see them. */
static struct view {
	uid_t uid;
	pid_t pid;
	pid_t stuck[STUCK_PROGRAMS]; /* 0: killed */
	double longest;
	uint32_t answers;
	char why[300]; /* the first thing that was wrong */
} * view;

/* ---- asking ---- */

static int engine_fd;

static void engine_connect(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	engine_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	strncpy(to.sun_path, getenv("UROCE_SOCKET"), sizeof(to.sun_path) - 1);
	if (connect(engine_fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		_exit(1);
}

static void __attribute__((format(printf, 1, 2))) wrong(const char *format, ...)
{
	va_list a;

	if (view->why[0] != '\0')
		return;
	va_start(a, format);
	vsnprintf(view->why, sizeof(view->why), format, a);
	va_end(a);
}

/* False: there was no answer; this prints so. */
static bool ask(struct starved *s, enum command what, struct command_request *q, size_t q_size,
		struct command_reply *r, size_t r_size)
{
	struct pollfd p = { .fd = engine_fd, .events = POLLIN };
	double took;

	*q = (struct command_request){ .magic = COMMAND_MAGIC,
				       .version = COMMAND_VERSION,
				       .command = (uint16_t)what,
				       .length = (uint32_t)q_size };
	starved_begin(s);
	if (send(engine_fd, q, q_size, MSG_NOSIGNAL) != (ssize_t)q_size) {
		wrong("command %d: %s", what, strerror(errno));
		return false;
	}
	if (poll(&p, 1, WAIT_SECONDS * 1000) != 1) {
		wrong("command %d is not answered", what);
		return false;
	}
	if (recv(engine_fd, r, r_size, 0) < (ssize_t)sizeof(*r)) {
		wrong("command %d: no reply", what);
		return false;
	}
	took = starved_command(s);
	view->longest = MAX_OF(view->longest, took);
	view->answers++;
	return true;
}

/* Any of the lists: they begin alike. */
union part {
	struct {
		struct command_reply h;
		uint64_t next;
		uint32_t count, reserved;
	} any;
	struct reply_qp_list qps;
	struct reply_mr_list mrs;
	struct reply_program_list programs;
	struct reply_cm_list ids;
	struct reply_neighbour_list neighbours;
	struct reply_path_list paths;
};

/* Calls `row` for each entry of the list. Returns how many there are. */
static uint32_t list(struct starved *s, enum command what,
		     void (*row)(const union part *p, uint32_t i))
{
	struct request_list q = { .from = 0 };
	union part p;
	uint32_t n = 0;

	do {
		if (!ask(s, what, &q.h, sizeof(q), &p.any.h, sizeof(p)) || p.any.h.error != 0) {
			wrong("list %d: error %d", what, p.any.h.error);
			return n;
		}
		for (uint32_t i = 0; row != NULL && i < p.any.count; i++)
			row(&p, i);
		n += p.any.count;
		if (p.any.next != 0 && p.any.next <= q.from)
			wrong("list %d does not end", what);
		q.from = p.any.next;
	} while (q.from != 0 && view->why[0] == '\0');
	return n;
}

/* ---- what each user should see ---- */

static bool sees_all(void)
{
	return view->uid == 0;
}

/* The program lives, and its objects may be listed. */
static bool is_there(uint32_t pid)
{
	bool found = pid == (uint32_t)view->pid;

	for (uint32_t i = 0; sees_all() && i < STUCK_PROGRAMS; i++)
		found |= pid != 0 && pid == (uint32_t)view->stuck[i];
	return found;
}

static uint32_t own; /* rows */
static uint32_t of[STUCK_PROGRAMS]; /* likewise, of each of the others */

static void begin_rows(void)
{
	own = 0;
	memset(of, 0, sizeof(of));
}

static void count_row(const char *what, uint32_t pid)
{
	if (!is_there(pid))
		wrong("%s of program %u, which is not there", what, pid);
	own += pid == (uint32_t)view->pid;
	for (uint32_t i = 0; i < STUCK_PROGRAMS; i++)
		of[i] += pid == (uint32_t)view->stuck[i];
}

static void see_queue_pair(const union part *p, uint32_t i)
{
	const struct listed_qp *q = &p->qps.qp[i];

	count_row("a queue pair", q->pid);
	if (q->pid != (uint32_t)view->pid)
		return;
	for (int k = 0; k < 2; k++)
		if (q->qpn == e.qp[k]->qp_num && q->dest_qpn == e.qp[1 - k]->qp_num &&
		    q->state == QP_STATE_RTS && q->type == QP_TYPE_RC && q->uid == view->uid &&
		    q->way == LISTED_HERE)
			return;
	wrong("queue pair %#x to %#x in state %u of user %u", q->qpn, q->dest_qpn, q->state,
	      q->uid);
}

static void see_region(const union part *p, uint32_t i)
{
	const struct listed_mr *m = &p->mrs.mr[i];

	count_row("a region", m->pid);
	if (m->pid == (uint32_t)view->pid &&
	    (m->address != (uintptr_t)e.buffer || m->length != BUFFER || m->key != e.mr->lkey))
		wrong("region %#x of %lu octets", m->key, (unsigned long)m->length);
}

static void see_program(const union part *p, uint32_t i)
{
	const struct listed_program *g = &p->programs.program[i];

	count_row("an entry", g->pid);
	if (g->qps > 2)
		wrong("program %u has %u queue pairs", g->pid, g->qps);
	/* one domain is the id's */
	if (g->pid == (uint32_t)view->pid &&
	    (g->qps != 2 || g->cqs != 1 || g->pds != 2 || g->mrs != 1 || g->ids != 1))
		wrong("%u queue pairs, %u CQs, %u domains, %u regions, %u ids of our own", g->qps,
		      g->cqs, g->pds, g->mrs, g->ids);
}

static void see_id(const union part *p, uint32_t i)
{
	const struct cm_listed *id = &p->ids.id[i];

	if (id->pid != (uint32_t)view->pid || strcmp(id->state, "LISTEN") != 0)
		wrong("an id of program %u that is in state %.19s", id->pid, id->state);
}

/* The others end with theirs, or the engine ends them, so they may have less. */
static void expect_rows(const char *what, uint32_t wanted, uint32_t most)
{
	if (own != wanted)
		wrong("%u %s of our own and not %u", own, what, wanted);
	for (uint32_t i = 0; i < STUCK_PROGRAMS; i++)
		if (of[i] > most)
			wrong("%u %s of program %u", of[i], what, (uint32_t)view->stuck[i]);
}

static uint32_t queue_pairs(struct starved *s)
{
	struct reply_statistics r = { 0 };
	struct request_empty q;

	if (ask(s, COMMAND_STATISTICS, &q.h, sizeof(q), &r.h, sizeof(r)) && r.h.error != 0)
		wrong("statistics: %s", r.h.why);
	return r.qps;
}

static void look_at_queue_pairs(struct starved *s)
{
	uint32_t before = queue_pairs(s), listed, after;

	begin_rows();
	listed = list(s, COMMAND_QP_LIST, see_queue_pair);
	after = queue_pairs(s);
	expect_rows("queue pairs", 2, 2);
	if (sees_all() && before == after && listed != before)
		wrong("%u queue pairs, of %u", listed, before);
}

static void look_at_rest(struct starved *s)
{
	struct request_cycles cycles = { .action = CYCLES_READ };
	struct request_empty empty;
	struct reply_cycles c = { 0 };
	struct reply_device d = { 0 };
	uint32_t n;

	n = list(s, COMMAND_CM_LIST, see_id);
	if (n != 1)
		wrong("%u ids", n);
	n = list(s, COMMAND_NEIGHBOUR_LIST, NULL) + list(s, COMMAND_PATH_LIST, NULL);
	if (n != 0)
		wrong("%u neighbours and paths, without a port", n);
	if (ask(s, COMMAND_DEVICE, &empty.h, sizeof(empty), &d.h, sizeof(d)) &&
	    (d.h.error != 0 || strcmp(d.name, "uroce0") != 0))
		wrong("the device is %.31s", d.name);
	if (ask(s, COMMAND_CYCLES, &cycles.h, sizeof(cycles), &c.h, sizeof(c)) &&
	    c.h.error != (sees_all() ? 0 : EPERM))
		wrong("cycles: error %d", c.h.error);
}

static void look(struct starved *s)
{
	look_at_queue_pairs(s);
	begin_rows();
	list(s, COMMAND_MR_LIST, see_region);
	expect_rows("regions", 1, 2);
	begin_rows();
	list(s, COMMAND_PROGRAM_LIST, see_program);
	expect_rows("entries", 1, 1);
	look_at_rest(s);
}

/* ---- the observer ---- */

static void listen_to_callers(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	if (channel == NULL || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_bind_addr(id, (struct sockaddr *)&to) != 0 || rdma_listen(id, 1) != 0)
		_exit(2);
}

static _Noreturn void be_looking(int orders, int report)
{
	struct starved s;
	char octet;

	if (!stuck_become(view->uid))
		_exit(3);
	endpoint_open(&e);
	listen_to_callers();
	engine_connect();
	starved_open(&s);
	if (write(report, "+", 1) != 1)
		_exit(4);
	while (read(orders, &octet, 1) == 1) {
		for (int i = 0; i < LOOKS && view->why[0] == '\0'; i++)
			look(&s);
		if (write(report, "+", 1) != 1)
			_exit(4);
	}
	_exit(0);
}

static pid_t looking;
static int orders[2], report[2];

/* '?': none comes. */
static char next_octet(void)
{
	struct pollfd p = { .fd = report[0], .events = POLLIN };
	char octet;

	return poll(&p, 1, 2 * WAIT_SECONDS * 1000) == 1 && read(report[0], &octet, 1) == 1 ? octet
											    : '?';
}

static void begin_looking(uid_t uid)
{
	view = mmap(NULL, sizeof(*view), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(view, MAP_FAILED);
	cr_assert_eq(pipe(orders), 0);
	cr_assert_eq(pipe(report), 0);
	view->uid = uid;
	looking = fork();
	if (looking == 0) {
		view->pid = getpid();
		close(orders[1]);
		close(report[0]);
		be_looking(orders[0], report[1]);
	}
	close(orders[0]);
	close(report[1]);
	cr_assert_eq(next_octet(), '+', "user %u does not begin", uid);
}

static bool is_right(const char *when)
{
	char answer;

	for (size_t i = 0; i < STUCK_PROGRAMS; i++)
		view->stuck[i] = stuck_program(i);
	cr_assert_eq(write(orders[1], "l", 1), 1);
	answer = next_octet();
	cr_expect_eq(answer, '+', "%s: no end of lists, after %u answers", when, view->answers);
	cr_expect_str_empty(view->why, "%s: %s", when, view->why);
	cr_expect_lt(view->longest, SLOW, "%s: an answer took %.3f s", when, view->longest);
	return answer == '+' && view->why[0] == '\0';
}

static void end_looking(void)
{
	cr_log_info("user %u: %u answers, the longest after %.3f s", view->uid, view->answers,
		    view->longest);
	close(orders[1]);
	close(report[0]);
	kill(looking, SIGKILL);
	waitpid(looking, NULL, 0);
	munmap(view, sizeof(*view));
}

/* ---- uroce stat ---- */

/* Its output; its exit status, or -1: it did not end. */
static int stat_prints(const char *view_name, const char *format, char *text, size_t size)
{
	double end = starved_now() + WAIT_SECONDS;
	FILE *file = tmpfile();
	pid_t pid;
	int status;

	cr_assert_not_null(file, "%m");
	pid = fork();
	if (pid == 0) {
		dup2(fileno(file), STDOUT_FILENO);
		dup2(fileno(file), STDERR_FILENO);
		execl(getenv("UROCE"), "uroce", "stat", view_name, format, NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (starved_now() > end) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			fclose(file);
			return -1;
		}
		usleep(1000);
	}
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_views(void)
{
	static const struct {
		const char *name;
		bool ours; /* it names our program */
	} views[] = {
		{ "--hw", false },	   { "--all", false },	 { "--cm", true },
		{ "--programs", true },	   { "--qps", true },	 { "--memory", true },
		{ "--neighbours", false }, { "--paths", false }, { "--cycles=0.05", false },
		{ "--prometheus", false },
	};
	static char text[OUTPUT];
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", view->pid);
	for (size_t i = 0; i < ARRAY_SIZE(views); i++)
		for (int json = 0; json < (strcmp(views[i].name, "--prometheus") ? 2 : 1); json++) {
			int status = stat_prints(views[i].name, json ? "--json" : NULL, text,
						 sizeof(text));

			cr_expect_eq(status, 0, "uroce stat %s%s: %d: %s", views[i].name,
				     json ? " --json" : "", status, text);
			cr_expect(!views[i].ours || strstr(text, pid) != NULL,
				  "uroce stat %s%s: %s is not in\n%s", views[i].name,
				  json ? " --json" : "", pid, text);
		}
}

/* ---- both ---- */

static void all_is_listed(uid_t attackers, uid_t looks)
{
	enum stuck_begun begun;
	char why[200] = "";

	if (geteuid() != 0)
		cr_skip_test("users can be changed by root only");
	begin_looking(looks);
	stuck_begin(attackers, (const int[]){ orders[1], report[0] });
	begun = stuck_await(why);
	if (begun == STUCK_ALL) {
		stuck_await_queue_pairs(2);
		if (is_right("they attack")) {
			stuck_kill_some();
			stuck_await_queue_pairs(2);
			if (is_right("some are killed") && looks == 0)
				expect_views();
		}
	}
	end_looking();
	stuck_end();
	cr_assert_neq(begun, STUCK_NOT_ALL, "%s", why);
	if (begun == STUCK_CANNOT)
		cr_skip_test("no /dev/fuse, or no mount namespaces");
}

TestSuite(stuck_lists, .timeout = 240);

/* hostile H-121: programs that are killed, or stay, while their memory blocks. */
Test(stuck_lists, of_another_user_beside_a_users_programs)
{
	all_is_listed(NOBODY, SOMEBODY);
}

/* hostile H-121: ... */
Test(stuck_lists, of_all_beside_a_users_programs)
{
	all_is_listed(NOBODY, 0);
}

Test(stuck_lists, of_another_user_beside_programs_of_the_engines_user)
{
	all_is_listed(0, SOMEBODY);
}

Test(stuck_lists, of_all_beside_programs_of_the_engines_user)
{
	all_is_listed(0, 0);
}
