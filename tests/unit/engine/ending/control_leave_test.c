/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which LEAVE_PROMOTED makes direct memory peer memory, observed after each step. An atomic
 * that one lcore still makes in the file, and one that another lcore already makes in the program's
 * memory, would not be atomic to each other. Traffic would show that too seldom for a test.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig/control_rig.h"
#include "control/control.h"
#include "drivers/client_memory/mover.h"
#include "drivers/client_memory/peer.h"
#include "drivers/client_memory/peer_atomic.h"
#include "lcore/inside.h"
#include "lcore/moving/moving.h"

#define STEPS 8u

TestSuite(control_leave, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

struct look {
	bool jobs; /* movers are asked to leave the memory; else: lcores are waited for */
	bool mover, direct;
	int atomic; /* of peer memory: 0 or EBUSY */
};

static struct {
	struct client *client; /* NULL: nobody looks */
	uint32_t key;
	uint32_t count;
	struct look look[STEPS];
	uint32_t strange; /* calls of lcores that the engine does not have */
} seen;

void __real_engine_grace_period(struct engine *e);
void __wrap_engine_grace_period(struct engine *e);
void __real_client_memory_leave(struct client *c);
void __wrap_client_memory_leave(struct client *c);
void __real_lcore_call(struct lcore *l, void (*run)(struct lcore *, void *, nanotime), void *arg);
void __wrap_lcore_call(struct lcore *l, void (*run)(struct lcore *, void *, nanotime), void *arg);

static int try_atomic(const struct client *c)
{
	static uint64_t word;
	struct peer_atomic a = { .value = 1 };

	return peer_memory_atomic(c->memory, (uintptr_t)&word, &a, clock_now());
}

static void look(bool jobs)
{
	const struct region *r;

	if (seen.client == NULL || seen.count == STEPS)
		return;
	r = key_find(&((struct engine *)engine)->keys, seen.key);
	seen.look[seen.count++] = (struct look){ .jobs = jobs,
						 .mover = client_mover(seen.client) != NULL,
						 .direct = r->piece[0].direct != NULL,
						 .atomic = try_atomic(seen.client) };
}

void __wrap_engine_grace_period(struct engine *e)
{
	look(false);
	__real_engine_grace_period(e);
}

void __wrap_client_memory_leave(struct client *c)
{
	look(true);
	__real_client_memory_leave(c);
}

void __wrap_lcore_call(struct lcore *l, void (*run)(struct lcore *, void *, nanotime), void *arg)
{
	const struct engine *e = (struct engine *)engine;

	if (l < e->lcore + e->lcores)
		__real_lcore_call(l, run, arg);
	else
		seen.strange++;
}

static struct client *only_client(void)
{
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (((struct engine *)engine)->client[i] != NULL)
			return ((struct engine *)engine)->client[i];
	cr_assert_fail("no client");
	return NULL;
}

static void pass_promoted(int fd)
{
	int file = memfd_create("test", MFD_ALLOW_SEALING);
	struct carrier_descriptors in = { .count = 1, .fd = { file } };
	struct request_empty q = { 0 };
	struct reply_empty r;

	cr_assert_eq(ftruncate(file, 4096), 0);
	cr_assert_eq(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	cr_assert_eq(ask(fd, COMMAND_PROMOTED_FILE, &q.h, sizeof(q), &r.h, sizeof(r), &in, NULL),
		     0);
	close(file);
}

static uint32_t reg_promoted(int fd, uint32_t pd)
{
	uint64_t place = ((uintptr_t)memory + 4095) & ~UINT64_C(4095);
	union {
		struct request_reg_mr r;
		uint8_t octets[sizeof(struct request_reg_mr) + sizeof(struct mr_backing)];
	} q = { .r = { .pd = pd,
		       .access = ACCESS_LOCAL_WRITE,
		       .address = place,
		       .iova = place,
		       .length = 4096,
		       .backings = 1 } };
	struct reply_reg_mr r;

	q.r.backing[0] =
		(struct mr_backing){ .length = 4096, .fd = BACKING_PROMOTED, .writable = 1 };
	cr_assert_eq(ask(fd, COMMAND_REG_MR, &q.r.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
	return r.lkey;
}

Test(control_leave, atomics_wait_until_no_copy_is_in_the_file)
{
	/* lcores have a mover; then all look again, and then movers do, while atomics wait */
	static const struct look wanted[] = { { false, true, true, 0 },
					      { false, true, false, EBUSY },
					      { true, true, false, EBUSY } };
	struct request_leave_promoted q = { .leaves = 1 };
	int fd = attach();
	struct reply_empty r;
	struct objects o;

	make_objects(fd, &o);
	pass_promoted(fd);
	seen.key = reg_promoted(fd, o.pd);
	seen.client = only_client();
	cr_assert_eq(ask(fd, COMMAND_LEAVE_PROMOTED, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		     0);
	cr_assert_eq(seen.count, 3, "%u steps", seen.count);
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect_eq(seen.look[i].jobs, wanted[i].jobs, "step %u", i);
		cr_expect_eq(seen.look[i].mover, wanted[i].mover, "step %u: the mover", i);
		cr_expect_eq(seen.look[i].direct, wanted[i].direct, "step %u: the piece", i);
		cr_expect_eq(seen.look[i].atomic, wanted[i].atomic, "step %u: an atomic gives %d",
			     i, seen.look[i].atomic);
	}
	cr_expect_eq(try_atomic(seen.client), 0, "then they go on");
	seen.client = NULL;
	close(fd);
	expect_counts(0, 0, 0, 0);
}

/* They look at what they hold, if the program's memory was ever moved directly. */
Test(control_leave, only_lcores_that_there_are_let_go)
{
	struct request_leave_promoted q = { .leaves = 1 };
	struct engine *e = (struct engine *)engine;
	int fd = attach();
	struct reply_empty r;
	struct objects o;

	make_objects(fd, &o);
	pass_promoted(fd);
	reg_promoted(fd, o.pd);
	__atomic_store_n(&e->direct_moves[only_client()->number], 1, __ATOMIC_RELEASE);
	cr_assert_eq(ask(fd, COMMAND_LEAVE_PROMOTED, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		     0);
	cr_expect_eq(seen.strange, 0);
	close(fd);
	expect_counts(0, 0, 0, 0);
}
