/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "load.h"

#define READ_OCTETS  (1u << 18)
#define LARGEST	     (1u << 20) /* of one write */
#define LARGEST_ECHO 4096u
#define PATIENCE     20u /* seconds */
#define SKIPPED	     100u /* round trips before the first that counts */

static uint8_t octets[LARGEST];

/* The first CPUs that this process may use, as EAL's lcores will be. */
static void pin(uint32_t wanted)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && wanted-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(i, &one);
			sched_setaffinity(0, sizeof(one), &one);
			return;
		}
}

static int listener_open(struct sockaddr_in *at)
{
	socklen_t n = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd >= 0 && bind(fd, (struct sockaddr *)at, n) == 0 && listen(fd, 1) == 0 &&
	    getsockname(fd, (struct sockaddr *)at, &n) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool join(struct tcp_pair *t)
{
	struct sockaddr_in at;
	int listener = listener_open(&at), on = 1;
	bool ok;

	if (listener < 0)
		return false;
	t->near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* loopback: refused at once, or in the listener's queue */
	ok = t->near >= 0 && connect(t->near, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	     (t->far = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;
	close(listener);
	if (!ok)
		return false;
	channel_limit(t->near, PATIENCE);
	channel_limit(t->far, PATIENCE);
	return setsockopt(t->near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
	       setsockopt(t->far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
}

int tcp_open(struct tcp_pair *t, bool two_cores, char *why, size_t why_size)
{
	*t = (struct tcp_pair){ .near = -1, .far = -1, .two = two_cores };
	if (join(t))
		return 0;
	snprintf(why, why_size, "The kernel's TCP was not measured: 127.0.0.1: %s.",
		 strerror(errno));
	tcp_close(t);
	return 1;
}

void tcp_close(struct tcp_pair *t)
{
	if (t->near >= 0)
		close(t->near);
	if (t->far >= 0)
		close(t->far);
	t->near = t->far = -1;
}

/* ---- the other thread ---- */

struct other {
	const struct tcp_pair *pair;
	uint64_t expected; /* octets that it reads; UINT64_MAX: not known yet. Atomic */
	uint32_t echo; /* octets of a message that it sends back; 0: it only reads */
	bool failed;
};

static void *drain(void *arg)
{
	static uint8_t into[READ_OCTETS];
	struct other *o = arg;
	uint64_t had = 0;

	pin(o->pair->two ? 1 : 0);
	/* the last octet is written after `expected` is known */
	while (had < __atomic_load_n(&o->expected, __ATOMIC_ACQUIRE)) {
		ssize_t n = read(o->pair->far, into, sizeof(into));

		if (n <= 0) {
			o->failed = true;
			break;
		}
		had += (uint64_t)n;
	}
	return NULL;
}

static void *echo(void *arg)
{
	static uint8_t message[LARGEST_ECHO];
	struct other *o = arg;

	pin(o->pair->two ? 1 : 0);
	do {
		o->failed = !channel_get(o->pair->far, message, o->echo) ||
			    !channel_put(o->pair->far, message, o->echo);
	} while (!o->failed && message[0] != 0);
	return NULL;
}

/* ---- this thread ---- */

double tcp_rate(struct tcp_pair *t, uint32_t size, double seconds)
{
	struct other o = { .pair = t, .expected = UINT64_MAX };
	nanotime begin, stop;
	uint64_t sent = 0;
	pthread_t thread;
	cpu_set_t cpus;
	bool ok = true;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (size > LARGEST || pthread_create(&thread, NULL, drain, &o) != 0)
		return 0;
	pin(0);
	begin = time_now();
	stop = begin + (nanotime)(seconds * 1e9);
	for (; ok && time_now() < stop; sent += size)
		ok = channel_put(t->near, octets, size);
	/* one octet more, so that the reader, which may have all of them, looks once more */
	__atomic_store_n(&o.expected, sent + 1, __ATOMIC_RELEASE);
	ok = ok && channel_put(t->near, octets, 1);
	if (!ok)
		shutdown(t->near, SHUT_RDWR);
	pthread_join(thread, NULL);
	stop = time_now();
	sched_setaffinity(0, sizeof(cpus), &cpus);
	return ok && !o.failed ? (double)sent * 8e9 / (double)(stop - begin) : 0;
}

static bool trips(struct tcp_pair *t, uint32_t size, nanotime stop, struct histogram *h)
{
	uint8_t message[LARGEST_ECHO] = { 1 };
	bool last = false;

	for (uint32_t i = 0; !last; i++) {
		nanotime begin = time_now();

		last = begin >= stop && h->count >= PERF_TRIPS;
		message[0] = !last;
		if (!channel_put(t->near, message, size) || !channel_get(t->near, message, size))
			return false;
		if (i >= SKIPPED)
			histogram_add(h, (time_now() - begin) / 2);
	}
	return true;
}

int tcp_latency(struct tcp_pair *t, uint32_t size, double seconds, struct histogram *h)
{
	struct other o = { .pair = t, .echo = size };
	pthread_t thread;
	cpu_set_t cpus;
	bool ok;

	histogram_init(h);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (size > LARGEST_ECHO || pthread_create(&thread, NULL, echo, &o) != 0)
		return 1;
	pin(0);
	ok = trips(t, size, time_now() + (nanotime)(seconds * 1e9), h);
	if (!ok)
		shutdown(t->near, SHUT_RDWR);
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	return !ok || o.failed;
}
