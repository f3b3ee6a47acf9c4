/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads may bind counters to rules at once. Runs, privileged, with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw_rig.h"
#include "verbs/queues/raw.h"

static struct raw_rig r;
static const struct counters *watched;
static uint32_t sent; /* messages to the engine */
static uint32_t locked; /* ... under the lock of the watched counters */

/* The library's calls come here, as the program's symbols precede libc's. */
__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
						       int flags)
{
	if (watched != NULL) {
		sent++;
		locked += watched->lock.taken != 0;
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}

static void open_all(void)
{
	raw_rig_open(&r);
}

static void close_all(void)
{
	raw_rig_close(&r);
}

TestSuite(raw_counters, .init = open_all, .fini = close_all, .timeout = 60);

Test(raw_counters, are_bound_under_their_lock)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *k = ibv_create_counters(r.context, &init);
	struct ibv_counter_attach_attr packets = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });

	cr_assert(k != NULL && flow != NULL, "%m");
	watched = counters_of(k);
	cr_expect_eq(ibv_attach_counters_point_flow(k, &packets, flow), 0);
	cr_expect_eq(watched->lock.taken, 0, "it is given back");
	watched = NULL;
	cr_expect_eq(sent, 1, "the engine was asked");
	cr_expect_eq(locked, 1, "another thread could have bound the rule meanwhile");
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_counters(k), 0);
}
