/* SPDX-License-Identifier: BSD-3-Clause */
/* The conductor of the tests of import, see import_rig.h. */
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "import_rig.h"

struct process exporter, importer;
uint8_t *areas;
struct reply_statistics before;
struct answer exported;
int token;

void statistics(struct reply_statistics *s)
{
	struct request_empty q;
	int fd = message_connect(getenv("UROCE_SOCKET"));

	cr_assert_geq(fd, 0, "no engine at $UROCE_SOCKET");
	cr_assert_eq(message_exchange(fd, COMMAND_STATISTICS, 1, 5000, &q.h, sizeof(q), &s->h,
				      sizeof(*s), NULL, NULL),
		     0);
	close(fd);
}

static void start(struct process *p, uint8_t *own, uint8_t *others)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	p->pid = fork();
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		if (p == &importer)
			close(exporter.link);
		become(p == &importer ? "IMPORTER_UID" : "EXPORTER_UID");
		play(pair[1], own, others);
	}
	close(pair[1]);
	p->link = pair[0];
}

void kill_process(struct process *p)
{
	if (p->pid == 0)
		return;
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->link);
	p->pid = 0;
}

struct answer take_answer(struct process *p, enum request what, int *fd)
{
	struct pollfd wait = { .fd = p->link, .events = POLLIN };
	struct answer a;

	cr_assert_eq(poll(&wait, 1, (WAIT_SECONDS + 10) * 1000), 1, "no answer to request %d",
		     (int)what);
	cr_assert(receive_with(p->link, &a, sizeof(a), fd), "a process ended at request %d",
		  (int)what);
	return a;
}

int request(struct process *p, const struct ask *q, int fd, struct answer *a, int *got)
{
	int mine;

	cr_assert(send_with(p->link, q, sizeof(*q), fd), "a process has ended");
	*a = take_answer(p, q->what, &mine);
	if (got != NULL)
		*got = mine;
	else if (mine >= 0)
		close(mine);
	return a->error;
}

int tell(struct process *p, enum request what, uint32_t handle, uint64_t value)
{
	struct ask q = { .what = what, .handle = handle, .value = value };
	struct answer a;

	return request(p, &q, -1, &a, NULL);
}

void start_both(void)
{
	struct ask open = { .what = OPEN };

	memset(areas, 'e', HALF);
	memset(areas + AREA, 'i', HALF);
	start(&exporter, areas, areas + AREA);
	start(&importer, areas + AREA, areas);
	cr_assert_eq(request(&exporter, &open, -1, &exported, &token), 0, "%s",
		     strerror(exported.error));
	cr_assert_geq(token, 0, "no token");
}

void end_both(void)
{
	kill_process(&exporter);
	kill_process(&importer);
	close(token);
}

void import_begin(void)
{
	statistics(&before);
	areas = mmap(NULL, 2 * AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(areas, MAP_FAILED);
	start_both();
}

void import_end(void)
{
	time_t until = time(NULL) + WAIT_SECONDS;
	struct reply_statistics now;

	end_both();
	do
		statistics(&now);
	while (memcmp(now.objects, before.objects, sizeof(now.objects)) != 0 && time(NULL) < until);
	for (uint32_t i = 0; i < STATISTICS_KINDS; i++)
		cr_expect_eq(now.objects[i], before.objects[i], "%u objects of kind %u, not %u",
			     now.objects[i], i, before.objects[i]);
	cr_expect_eq(now.mrs, before.mrs);
	cr_expect_eq(now.qps, before.qps);
	munmap(areas, 2 * AREA);
}

struct answer import_all(void)
{
	struct ask q = { .what = IMPORT };
	struct answer a;

	cr_assert_eq(request(&importer, &q, token, &a, NULL), 0, "import_device: %s",
		     strerror(a.error));
	cr_assert_eq(tell(&importer, IMPORT_PD, exported.handle, 0), 0);
	q = (struct ask){ .what = IMPORT_MR, .handle = exported.handle_2 };
	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	cr_expect_eq(a.lkey, exported.lkey);
	cr_expect_eq(a.rkey, exported.rkey);
	cr_expect_eq(a.value, AREA);
	return a;
}

int write_status(struct process *p, uint8_t *from, uint32_t lkey, uint8_t *to, uint32_t rkey)
{
	struct ask q = { .what = POST,
			 .opcode = IBV_WR_RDMA_WRITE,
			 .num_sge = 1,
			 .sge = { { (uintptr_t)from, HALF, lkey } },
			 .remote = (uintptr_t)to + HALF,
			 .rkey = rkey };
	struct answer a;

	cr_assert_eq(request(p, &q, -1, &a, NULL), 0);
	return a.status;
}

void expect_filled(const uint8_t *octets, size_t n, int with)
{
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(octets[i], with, "octet %zu is %c", i, octets[i]);
}

uint8_t *exporters(void)
{
	return areas;
}

uint8_t *importers(void)
{
	return areas + AREA;
}

struct answer register_importers(void)
{
	struct ask q = { .what = REGISTER };
	struct answer a;

	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	return a;
}
