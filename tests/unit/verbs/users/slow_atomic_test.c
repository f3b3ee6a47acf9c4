/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics while those of another program are stuck in memory that blocks for ever (mute_fuse.h): one
 * for each word of a page, so that they hold all locks. Other programs' atomics succeed, and soon.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/endpoint.h"
#include "rig/mute_fuse.h"
#include "rig/starved.h"

#define NOBODY	 65534
#define SOMEBODY 1234
#define PAGE	 4096u
#define ACCESS	 (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

#define BOUND 0.1 /* seconds, for an atomic of another program */

static struct endpoint e;

static bool become(uid_t uid)
{
	if (uid != 0 && setresuid(uid, uid, uid) != 0)
		return false;
	return prctl(PR_SET_DUMPABLE, 1) == 0; /* changing the user resets it */
}

static struct ibv_send_wr add_to(uint8_t *word, const struct ibv_mr *mr, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){ (uintptr_t)e.buffer, 8, e.mr->lkey };
	return (struct ibv_send_wr){ .sg_list = sge,
				     .num_sge = 1,
				     .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				     .wr.atomic = { (uintptr_t)word, 1, 0, mr->rkey } };
}

/* ---- the program with memory that blocks ---- */

struct attacker {
	pid_t pid;
	int life; /* its end ends the daemon */
};

static void attack(uid_t uid, int life, int ready)
{
	uint8_t *memory = mute_fuse_map(PAGE, life);
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	char octet;

	if (memory == NULL || !become(uid))
		_exit(write(ready, "-", 1) == 1 ? 1 : 2);
	endpoint_open(&e);
	mr = ibv_reg_mr(e.pd, memory, PAGE, ACCESS);
	if (mr == NULL)
		_exit(3);
	wr = add_to(memory, mr, &sge);
	if (ibv_post_send(e.qp[0], &wr, &bad) != 0)
		_exit(3);
	if (!mute_fuse_is_waited_for(WAIT_SECONDS))
		_exit(3);
	if (write(ready, "+", 1) != 1)
		_exit(4);
	_exit(read(life, &octet, 1) == 0 ? 0 : 5);
}

/* False: FUSE is not available. */
static bool begin_attack(struct attacker *a, uid_t uid)
{
	struct pollfd p = { .events = POLLIN };
	int ready[2], life[2];
	char octet = '?';

	cr_assert(pipe(ready) == 0 && pipe(life) == 0);
	a->pid = fork();
	cr_assert_geq(a->pid, 0);
	if (a->pid == 0) {
		close(life[1]);
		attack(uid, life[0], ready[1]);
	}
	close(life[0]);
	close(ready[1]);
	a->life = life[1];
	p.fd = ready[0];
	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "the other program does not begin");
	cr_assert_eq(read(ready[0], &octet, 1), 1, "the other program failed");
	close(ready[0]);
	return octet == '+';
}

/* It ends by its pipe, because we may not kill a process of another user. */
static void end_attack(const struct attacker *a)
{
	close(a->life);
	waitpid(a->pid, NULL, 0);
}

/* ---- the other programs ---- */

/* The longest time of one atomic at each word of a page. */
static double add_everywhere(uint8_t *page)
{
	double longest = 0;
	struct starved s;

	starved_open(&s);
	for (uint32_t i = 0; i < PAGE; i += 8) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = add_to(page + i, e.mr, &sge);
		struct ibv_wc wc;
		double took;

		wr.send_flags = IBV_SEND_SIGNALED;
		took = starved_request(&s, e.qp[0], e.cq, &wr, &wc);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "word %u: %s", i / 8,
			     ibv_wc_status_str(wc.status));
		if (took > longest)
			longest = took;
	}
	starved_close(&s);
	return longest;
}

static void atomics_go_on(uid_t attacker, uid_t healthy)
{
	struct attacker a;
	double longest;

	if (geteuid() != 0)
		cr_skip_test("users can be changed by root only");
	if (!begin_attack(&a, attacker)) {
		end_attack(&a);
		cr_skip_test("no /dev/fuse, or no mount namespaces");
	}
	cr_assert(become(healthy));
	endpoint_open(&e);
	longest = add_everywhere(e.buffer + PAGE);
	endpoint_close(&e);
	end_attack(&a);
	cr_assert_lt(longest, BOUND, "an atomic took %.3f s", longest);
}

Test(slow_atomic, of_another_user_do_not_delay_ours, .timeout = 100)
{
	atomics_go_on(NOBODY, 0);
}

Test(slow_atomic, of_another_user_do_not_delay_a_third_user, .timeout = 100)
{
	atomics_go_on(NOBODY, SOMEBODY);
}

Test(slow_atomic, of_the_same_user, .timeout = 100)
{
	atomics_go_on(NOBODY, NOBODY);
}
