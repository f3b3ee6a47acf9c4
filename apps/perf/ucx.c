/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucx.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/time.h"
#include "load.h"

#define PROGRAM	 "ucx_perftest"
#define PATIENCE 30u /* seconds beside those of the measurement */
#define PROBE	 20u /* messages that say how many fill the time */
#define WARM_UP	 "10"
#define LEAST	 20.0 /* messages of a measurement */
#define MOST	 1e7
#define OUTPUT	 4096u

struct run {
	const char *test;
	uint32_t size;
	uint32_t messages;
	double percentile;
	double seconds; /* that it will take, about */
};

/* The first CPU that this process may use, as EAL's first lcore will be. */
static int first_cpu(void)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all) == 0)
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &all))
				return i;
	return 0;
}

static void become(const struct run *r, int out)
{
	char cpu[16], size[16], messages[16], percentile[16];

	snprintf(cpu, sizeof(cpu), "%d", first_cpu());
	snprintf(size, sizeof(size), "%u", r->size);
	snprintf(messages, sizeof(messages), "%u", r->messages);
	snprintf(percentile, sizeof(percentile), "%g", r->percentile);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	unsetenv("LD_LIBRARY_PATH"); /* its modules would look for devices through our libibverbs */
	setenv("UCX_TLS", "tcp", 1);
	setenv("UCX_NET_DEVICES", "lo", 1);
	setenv("UCX_LOG_LEVEL", "fatal", 1);
	if (dup2(out, STDOUT_FILENO) >= 0 && freopen("/dev/null", "w", stderr) != NULL)
		execlp(PROGRAM, PROGRAM, "-l", "-t", r->test, "-s", size, "-n", messages, "-w",
		       WARM_UP, "-R", percentile, "-c", cpu, "-f", "-v", (char *)NULL);
	_exit(127);
}

/* Reads until the end of the program. False: it took too long, or wrote too much. */
static bool read_all(int from, char *text, size_t size, double seconds)
{
	nanotime end = time_now() + (nanotime)((seconds + PATIENCE) * 1e9);
	struct pollfd p = { .fd = from, .events = POLLIN };
	size_t had = 0;

	while (had + 1 < size) {
		nanotime now = time_now();
		ssize_t n;

		if (now >= end || poll(&p, 1, (int)((end - now) / 1000000) + 1) <= 0)
			return false;
		n = read(from, text + had, size - 1 - had);
		if (n <= 0) {
			text[had] = '\0';
			return n == 0;
		}
		had += (size_t)n;
	}
	return false;
}

/* The output of a run of the program. False: it cannot be run, or fails. */
static bool run(const struct run *r, char *text, size_t size)
{
	int ends[2], status;
	pid_t pid;
	bool ok;

	if (pipe(ends) != 0)
		return false;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		become(r, ends[1]);
	}
	close(ends[1]);
	ok = pid > 0 && read_all(ends[0], text, size, r->seconds);
	close(ends[0]);
	if (pid < 0)
		return false;
	if (!ok)
		kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && ok && status == 0;
}

/* Reads a line: messages a second, and the wanted percentile in us. */
static bool read_line(const char *line, double *rate, double *percentile)
{
	/* messages, percentile, average and overall time, the same two of bandwidth and of rate */
	return sscanf(line, "%*f,%lf,%*f,%*f,%*f,%*f,%*f,%lf", percentile, rate) == 2 && *rate > 0;
}

static bool measure(const struct run *r, double *rate, double *percentile)
{
	char text[OUTPUT], *line, *rest = text;
	bool found = false;

	if (!run(r, text, sizeof(text)))
		return false;
	while ((line = strsep(&rest, "\n")) != NULL)
		found = found || read_line(line, rate, percentile);
	return found;
}

/* A few messages first say how many fill the time. */
static bool measure_for(struct run *r, double seconds, double *rate, double *percentile)
{
	r->messages = PROBE;
	if (!measure(r, rate, percentile))
		return false;
	r->messages = (uint32_t)MIN_OF(MAX_OF(*rate * seconds, LEAST), MOST);
	r->seconds = seconds;
	return measure(r, rate, percentile);
}

bool ucx_answers(void)
{
	const struct run r = { .test = "tag_bw", .size = 8, .messages = PROBE, .percentile = 50 };
	double rate, percentile;

	return measure(&r, &rate, &percentile);
}

bool ucx_rate(uint32_t size, double seconds, double *bits)
{
	struct run r = { .test = "tag_bw", .size = size, .percentile = 50 };
	double rate, percentile;

	if (!measure_for(&r, seconds, &rate, &percentile))
		return false;
	*bits = rate * size * 8;
	return true;
}

/*
 * A process that plays with itself sends each message one way; the program takes it for a round trip, and
 * prints half of it.
 */
bool ucx_latency(uint32_t size, double percent, double seconds, double *us)
{
	struct run r = { .test = "tag_lat", .size = size, .percentile = percent };
	double rate, percentile;

	if (!measure_for(&r, seconds, &rate, &percentile))
		return false;
	*us = 2 * percentile;
	return true;
}
