/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a wake-up costs on this machine: half a round trip between two processes that wake each other through a UNIX socket, in
 * us, typical. Prints two numbers: both on the first processor, and on the first two.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIPS 10000

static double took[TRIPS];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void run_on(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		perror("sched_setaffinity");
}

static void answer(int fd)
{
	char octet;

	while (read(fd, &octet, 1) == 1 && write(fd, &octet, 1) == 1)
		continue;
	_exit(0);
}

static double half_round_trip(int other)
{
	char octet = 0;
	int fd[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fd) != 0 || (child = fork()) < 0) {
		perror("wake-bench");
		exit(1);
	}
	if (child == 0) {
		run_on(other);
		answer(fd[1]);
	}
	run_on(0);
	for (int i = 0; i < TRIPS; i++) {
		double begin = now_us();

		if (write(fd[0], &octet, 1) != 1 || read(fd[0], &octet, 1) != 1)
			exit(1);
		took[i] = (now_us() - begin) / 2;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fd[0]);
	close(fd[1]);
	qsort(took, TRIPS, sizeof(took[0]), order);
	return took[TRIPS / 2];
}

int main(void)
{
	double one = half_round_trip(0);

	printf("%.2f %.2f\n", one, half_round_trip(1));
	return 0;
}
