/* SPDX-License-Identifier: BSD-3-Clause */
/* Which threads' waits for a processor are excused: threads of our own stand for the engine's. */
#include "starved.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>

#define WAITS	0.2 /* s: for how long the worker waits for the processor */
#define PATIENT 30.0 /* s: until that counts as missing */

static pthread_t control;
static sem_t is_there, works, ends;
static bool takes_name; /* the worker, when it runs for the first time */
static double waited;
static bool done; /* atomic: it has waited for long enough */

static double waits_of_this_thread(void)
{
	unsigned long long ran, waits;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%llu %llu", &ran, &waits), 2);
	fclose(f);
	return (double)waits * 1e-9;
}

/* As a new mover: it has its maker's name until it runs. */
static void *work(void *arg)
{
	double before, end = starved_now() + PATIENT;

	sem_post(&is_there);
	sem_wait(&works);
	if (takes_name)
		prctl(PR_SET_NAME, "uroce-mover");
	before = waits_of_this_thread();
	while (waited < WAITS && starved_now() < end)
		waited = waits_of_this_thread() - before;
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	sem_wait(&ends);
	return NULL;
}

static void *be_control(void *arg)
{
	pthread_t worker;

	prctl(PR_SET_NAME, "uroce-control");
	cr_assert_eq(pthread_create(&worker, NULL, work, NULL), 0);
	pthread_join(worker, NULL);
	return NULL;
}

/* ---- a completion queue whose completion comes when the worker has done its work ---- */

static double looked[3]; /* when the last looks began, the newest first */
static double first_look;

static int look(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	looked[2] = looked[1];
	looked[1] = looked[0];
	looked[0] = starved_now();
	if (first_look == 0)
		first_look = looked[0];
	return __atomic_load_n(&done, __ATOMIC_ACQUIRE) ? 1 : 0;
}

static struct ibv_context context = { .ops.poll_cq = look };
static struct ibv_cq cq = { .context = &context };

struct result {
	double excused;
	double unheard; /* for so long the caller may not have noticed the completion, at most */
};

/* All on one processor, so that the worker waits while the caller looks. */
static struct result watch_worker(void)
{
	double begun, took, end, stolen;
	struct starved s;
	struct ibv_wc wc;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	sem_init(&is_there, 0, 0);
	sem_init(&works, 0, 0);
	sem_init(&ends, 0, 0);
	cr_assert_eq(pthread_create(&control, NULL, be_control, NULL), 0);
	sem_wait(&is_there);
	starved_open(&s);
	stolen = starved_stolen(&s);
	begun = starved_now();
	starved_begin(&s);
	sem_post(&works);
	cr_assert(starved_poll(&s, &cq, &wc, 1, &took));
	end = starved_now();
	stolen = starved_stolen(&s) - stolen;
	starved_close(&s);
	sem_post(&ends);
	pthread_join(control, NULL);
	cr_assert_geq(waited, WAITS, "the worker has waited for %.3f s only", waited);
	return (struct result){ end - begun - took, first_look - begun + end - looked[2] + stolen };
}

Test(starved, a_mover_that_is_new_is_no_control_thread, .timeout = 60)
{
	struct result r;

	takes_name = true;
	r = watch_worker();
	cr_assert_geq(r.excused, waited, "%.3f s of %.3f s", r.excused, waited);
}

Test(starved, a_control_thread_has_no_data_to_move, .timeout = 60)
{
	struct result r = watch_worker();

	/* Half of its wait is room for those of Criterion's threads, which are excused. */
	cr_assert_lt(r.excused, r.unheard + waited / 2, "%.3f s of %.3f s, beside %.3f s",
		     r.excused, waited, r.unheard);
}
