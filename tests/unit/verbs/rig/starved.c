/* SPDX-License-Identifier: BSD-3-Clause */
#include "starved.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

#define READ_AGAIN 0.005 /* s: so much too much may be excused */

double starved_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The processor time of one thread, so far. */
static double waited(int fd)
{
	unsigned long long ran, waits = 0;
	char text[128];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "%llu %llu", &ran, &waits) == 2 ? (double)waits * 1e-9 : 0;
}

/*
 * The time that the hypervisor gave to others: the eighth number of "cpu", of all processors
 * together.
 */
static double stolen(int fd)
{
	unsigned long long ticks = 0;
	char text[256];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		ticks = 0;
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

double starved_stolen(const struct starved *s)
{
	return stolen(s->machine);
}

/*
 * A thread begins with the name of the thread that made it, and takes its own when it runs for the
 * first time. The control thread makes the movers. So a new mover that has no processor yet has the
 * name of the control thread, and the name is looked at again when it matters.
 */
static bool is_named_control(int fd)
{
	char text[64];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return strcmp(text, "uroce-control\n") == 0;
}

static int open_of(const char *task, const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", task, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void add(struct starved *s, const char *task)
{
	uint32_t i = s->count;

	cr_assert_lt(i, (uint32_t)STARVED_THREADS, "too many threads");
	s->fd[i] = open_of(task, "schedstat");
	if (s->fd[i] < 0)
		return; /* it has ended */
	s->name[i] = open_of(task, "comm");
	if (s->name[i] >= 0 && !is_named_control(s->name[i])) {
		close(s->name[i]);
		s->name[i] = -1;
	}
	s->count++;
}

/* Without the caller, whose own wait is known from `own`. */
static void add_all(struct starved *s, const char *pid)
{
	uint32_t i = s->count;
	char path[128], task[200];
	struct dirent *d;
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	all = opendir(path);
	cr_assert_not_null(all, "%s: %m", path);
	while ((d = readdir(all)) != NULL) {
		snprintf(task, sizeof(task), "%s/%.32s", path, d->d_name);
		if (d->d_name[0] != '.' && atoi(d->d_name) != gettid())
			add(s, task);
	}
	closedir(all);
	while (i < s->count && s->name[i] < 0)
		i++;
	cr_assert_lt(i, s->count, "process %s has no thread uroce-control", pid);
}

void starved_open(struct starved *s)
{
	const char *pid = getenv("UROCED_PID"), *peer = getenv("UROCED_PEER_PID");

	*s = (struct starved){ 0 };
	s->own = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	s->machine = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	cr_assert(s->own >= 0 && s->machine >= 0, "/proc: %m");
	add_all(s, pid != NULL ? pid : "self");
	s->asked = s->count;
	if (peer != NULL)
		add_all(s, peer);
}

void starved_close(struct starved *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		close(s->fd[i]);
		if (s->name[i] >= 0)
			close(s->name[i]);
	}
	close(s->own);
	close(s->machine);
}

void starved_begin(struct starved *s)
{
	if (starved_now() - s->read_at > READ_AGAIN) {
		for (uint32_t i = 0; i < s->count; i++)
			s->before[i] = waited(s->fd[i]);
		s->own_before = waited(s->own);
		s->machine_before = stolen(s->machine);
		s->read_at = starved_now();
	}
	s->began = starved_now();
}

static double left(const struct starved *s, double took, double excused)
{
	excused += stolen(s->machine) - s->machine_before;
	return took > excused ? took - excused : 0;
}

/* For the caller, who polls; `deaf` is for how long he could not have noticed that all is done. */
static double data(const struct starved *s, double deaf)
{
	double excused = deaf, took = starved_now() - s->began;

	if (took < READ_AGAIN)
		return took;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->name[i] < 0 || !is_named_control(s->name[i]))
			excused += waited(s->fd[i]) - s->before[i];
	return left(s, took, excused);
}

bool starved_poll(struct starved *s, struct ibv_cq *cq, struct ibv_wc *wc, int n, double *took)
{
	double posted = starved_now(), looks = posted, looked;
	int got = 0, more;

	do {
		looked = looks;
		looks = starved_now();
		more = ibv_poll_cq(cq, n - got, wc + got); /* where it finds nothing it may yield */
		got += more > 0 ? more : 0;
	} while (got < n && more >= 0 && looks - posted < WAIT_SECONDS);
	*took = data(s, posted - s->began + starved_now() - looked);
	return got == n;
}

double starved_request(struct starved *s, struct ibv_qp *qp, struct ibv_cq *cq,
		       struct ibv_send_wr *wr, struct ibv_wc *wc)
{
	struct ibv_send_wr *bad;
	double took;

	wc->status = IBV_WC_GENERAL_ERR;
	starved_begin(s);
	if (ibv_post_send(qp, wr, &bad) != 0)
		return 0;
	if (!starved_poll(s, cq, wc, 1, &took))
		wc->status = IBV_WC_RESP_TIMEOUT_ERR;
	return took;
}

double starved_command(const struct starved *s)
{
	double excused = 0, took = starved_now() - s->began;

	if (took < READ_AGAIN)
		return took;
	excused = waited(s->own) - s->own_before;
	for (uint32_t i = 0; i < s->asked; i++)
		excused += waited(s->fd[i]) - s->before[i];
	return left(s, took, excused);
}

double starved_alone(const struct starved *s)
{
	double took = starved_now() - s->began;

	return took < READ_AGAIN ? took : left(s, took, waited(s->own) - s->own_before);
}
