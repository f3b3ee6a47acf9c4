/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with many regions: what registration and deregistration cost beside the others, with promotion set to auto and
 * to off. All regions are written first, as it matters to the kernel how much memory the program has. Prints
 * the mean of all, and of the first and the last tenth. Runs with an engine at $UROCE_SOCKET.
 * usage: register-many [REGIONS [KIB]]
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plain.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static void print(const char *what, const double *took, uint32_t n)
{
	double all = 0, first = 0, last = 0;
	uint32_t tenth = n / 10;

	for (uint32_t i = 0; i < n; i++) {
		all += took[i];
		first += i < tenth ? took[i] : 0;
		last += i >= n - tenth ? took[i] : 0;
	}
	printf("%s %8.1f us, the first tenth %8.1f, the last %8.1f", what, all / n, first / tenth,
	       last / tenth);
}

static void measure(const char *promote, uint32_t n, size_t octets)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context =
		list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;
	struct ibv_mr **mr = calloc(n, sizeof(*mr));
	uint8_t **memory = calloc(n, sizeof(*memory));
	double *took = calloc(n, sizeof(*took)), begin;

	need(pd != NULL && mr != NULL && memory != NULL && took != NULL, "a device and memory");
	for (uint32_t i = 0; i < n; i++) {
		memory[i] = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
		need(memory[i] != MAP_FAILED, "mmap");
		memset(memory[i], (int)i, octets);
	}
	for (uint32_t i = 0; i < n; i++) {
		begin = now_us();
		mr[i] = ibv_reg_mr(pd, memory[i], octets, ACCESS);
		took[i] = now_us() - begin;
		need(mr[i] != NULL, "ibv_reg_mr");
	}
	printf("%-4s ", promote);
	print("registration", took, n);
	for (uint32_t i = 0; i < n; i++) {
		begin = now_us();
		need(ibv_dereg_mr(mr[i]) == 0, "ibv_dereg_mr");
		took[i] = now_us() - begin;
	}
	print("; deregistration", took, n);
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const char *const ways[] = { "auto", "off" };
	uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 1600;
	size_t kib = argc > 2 ? (size_t)atoi(argv[2]) : 256;
	int status = 0;

	if (n < 10 || kib == 0)
		return 2;
	for (int i = 0; i < 2 && status == 0; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			setenv("UROCE_PROMOTE", ways[i], 1);
			measure(ways[i], n, kib << 10);
			_exit(0);
		}
		need(pid > 0 && waitpid(pid, &status, 0) == pid, "a process");
	}
	return status != 0;
}
