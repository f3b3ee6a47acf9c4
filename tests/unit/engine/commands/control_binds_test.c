/* SPDX-License-Identifier: BSD-3-Clause */
/* Binds of memory windows that wait for copies, while their queue pairs change. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>

#include "control/control.h"
#include "control/ending/settle.h"
#include "memory/key.h"
#include "rig/control_rig.h"
#include "../verbs/rig/endpoint.h"

#define LENGTH 256u

/* Under the control lock. Copies of the program's memory ... */
static bool found; /* ... are under way when a wait begins */
static bool last; /* ... do not end */

bool __real_settle_begin(struct client *c, struct settling *s);
bool __wrap_settle_begin(struct client *c, struct settling *s);
bool __real_settle_over(struct client *c, struct settling *s);
bool __wrap_settle_over(struct client *c, struct settling *s);

bool __wrap_settle_begin(struct client *c, struct settling *s)
{
	return __real_settle_begin(c, s) && !found;
}

bool __wrap_settle_over(struct client *c, struct settling *s)
{
	return __real_settle_over(c, s) && !last;
}

static struct endpoint e;
static struct ibv_mr *region;
static struct ibv_mw *window;

static struct engine *inside(void)
{
	return (struct engine *)engine;
}

/* Copies of the program's memory may run elsewhere, so that the control thread binds. */
static void share(void)
{
	pthread_mutex_lock(&inside()->control_lock);
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (inside()->client[i] != NULL)
			inside()->client[i]->shares = true;
	pthread_mutex_unlock(&inside()->control_lock);
}

static void begin(void)
{
	setenv("UROCE_SOCKET", "/nonexistent", 1); /* nobody but ourselves */
	control_rig_open();
	cr_assert_eq(uroce_register(engine), 0, "libibverbs.so.1 of this build is not loaded");
	endpoint_open(&e);
	region = ibv_reg_mr(e.pd, e.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	window = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	cr_assert(region != NULL && window != NULL, "%m");
	share();
}

static void end(void)
{
	cr_expect_eq(ibv_dealloc_mw(window), 0);
	cr_expect_eq(ibv_dereg_mr(region), 0);
	endpoint_close(&e);
	control_rig_close();
}

TestSuite(control_binds, .init = begin, .fini = end, .timeout = 120);

static void copies(bool are_found, bool do_last)
{
	pthread_mutex_lock(&inside()->control_lock);
	found = are_found;
	last = do_last;
	pthread_mutex_unlock(&inside()->control_lock);
}

static bool some_wait(void)
{
	bool some;

	pthread_mutex_lock(&inside()->control_lock);
	some = !LIST_EMPTY(&inside()->control->binds);
	pthread_mutex_unlock(&inside()->control_lock);
	return some;
}

static void await_waiting(bool wanted, const char *what)
{
	nanotime until = clock_now() + ENOUGH_MS * TIME_MS;

	while (some_wait() != wanted && clock_now() < until)
		poll(NULL, 0, 1);
	cr_assert_eq(some_wait(), wanted, "%s", what);
}

static void post_bind(struct ibv_qp *qp, uint32_t at)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { region, (uintptr_t)e.buffer + at, LENGTH,
						   IBV_ACCESS_REMOTE_WRITE } };

	cr_assert_eq(ibv_bind_mw(qp, window, &bind), 0);
}

static void bind_now(struct ibv_qp *qp, uint32_t at)
{
	struct ibv_wc wc;

	post_bind(qp, at);
	poll_completions(e.cq, &wc, 1, "a bind");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
}

/* Where the window's key leads; 0: nowhere. */
static uint64_t open_at(void)
{
	const struct region *r;
	uint64_t at;

	pthread_mutex_lock(&inside()->control_lock);
	r = key_find(&inside()->keys, window->rkey);
	at = r != NULL ? r->iova - (uintptr_t)e.buffer : 0;
	pthread_mutex_unlock(&inside()->control_lock);
	return at;
}

/* It would take the window from a later bind that has completed. */
Test(control_binds, one_of_a_queue_pair_that_was_reset_is_not_made)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	copies(true, true);
	post_bind(e.qp[1], 1024);
	await_waiting(true, "the first bind does not come to the control thread");
	cr_assert_eq(ibv_modify_qp(e.qp[1], &reset, IBV_QP_STATE), 0);
	copies(false, true);
	bind_now(e.qp[0], 2048);
	copies(false, false);
	await_waiting(false, "the first bind still waits");
	cr_expect_eq(open_at(), 2048, "the window's key leads to %lu", (unsigned long)open_at());
	cr_assert_eq(endpoint_connect(&e, e.qp[1], e.qp[0]->qp_num), 0);
	bind_now(e.qp[1], 4096);
	cr_expect_eq(open_at(), 4096, "the queue pair binds no more");
}
