/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of access to a client's memory: single and batched peer copies, in both directions, and
 * promotion of resident and of untouched pages. Prints one line per measurement; takes seconds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drivers/client_memory/peer.h"
#include "drivers/client_memory/promote.h"

#define CLIENT_OCTETS ((size_t)16 << 20)
#define BATCH	      32u
#define MIB	      ((size_t)1 << 20)

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void copies(const struct peer_memory *m, uint8_t *peer, uint32_t octets, uint32_t batch,
		   bool to_peer)
{
	static uint8_t local[BATCH][4096];
	struct peer_copy c[BATCH];
	uint32_t rounds = 100000 / batch;
	double from = seconds(), took;

	for (uint32_t r = 0; r < rounds; r++) {
		for (uint32_t i = 0; i < batch; i++)
			c[i] = (struct peer_copy){
				.peer_address =
					(uintptr_t)peer + (r * batch + i) * 4096 % CLIENT_OCTETS,
				.local = local[i],
				.length = octets,
				.to_peer = to_peer,
			};
		peer_memory_copy(m, c, batch);
		for (uint32_t i = 0; i < batch; i++)
			if (!c[i].ok) {
				fprintf(stderr, "a copy failed\n");
				exit(1);
			}
	}
	took = (seconds() - from) / (rounds * batch);
	printf("%-5s %-10s %5u octets, batch of %2u: %7.0f ns each, %5.2f GB/s\n",
	       to_peer ? "write" : "read", m->pid != 0 ? "pid or fd" : "fd", octets, batch,
	       took * 1e9, octets / took * 1e-9);
}

static void promotions(size_t octets, bool resident)
{
	uint8_t *p = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mr_backing b[BACKING_MAX];
	double from, there, back;
	uint32_t count;

	if (p == MAP_FAILED)
		exit(1);
	if (resident)
		memset(p, 1, octets);
	from = seconds();
	count = promote_range(p, octets, b, BACKING_MAX);
	there = seconds();
	promote_release(b, count);
	back = seconds();
	if (count == 0)
		printf("promotion is not available here\n");
	else
		printf("promote %4zu MiB, %s: %8.3f ms there (%.3f a MiB), %8.3f ms back\n",
		       octets / MIB, resident ? "resident " : "untouched", (there - from) * 1e3,
		       (there - from) * 1e3 / ((double)octets / MIB), (back - there) * 1e3);
	munmap(p, octets);
}

static pid_t start_client(const uint8_t *data)
{
	pid_t pid = fork();

	if (pid == 0) {
		memset((void *)(uintptr_t)data, 1, CLIENT_OCTETS);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, NULL, WUNTRACED);
	return pid;
}

int main(void)
{
	uint8_t *data = mmap(NULL, CLIENT_OCTETS, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const uint32_t octets[] = { 8, 4096 }, batches[] = { 1, BATCH };
	pid_t pid = start_client(data);
	struct peer_memory m;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	if (peer_memory_open(&m, open(path, O_RDWR | O_CLOEXEC), pid, geteuid()) != 0)
		return 1;
	for (uint32_t way = 0; way < 2; way++) {
		for (uint32_t i = 0; i < 8; i++)
			copies(&m, data, octets[i & 1], batches[i >> 1 & 1], i >> 2);
		m.pid = 0;
	}
	peer_memory_close(&m);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (size_t mib = 1; mib <= 256; mib *= 16) {
		promotions(mib * MIB, true);
		promotions(mib * MIB, false);
	}
	return 0;
}
