/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads that poll an engine's lcores: those that uroce_start() launches, services, or the
 * program's.
 *
 * The atomics are single flags: `stopping` for lcore_loop, `closed` for the client's library,
 * `polled` so that a program's loop does not come between. Nothing else is ordered by them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_service_component.h>

#include "base/bits.h"
#include "engine/inside.h"

/* ---- threads of its own ---- */

/* The main EAL lcore's thread belongs to the caller, so an engine thread polls that lcore. */
static void *main_lcore_thread(void *lcore)
{
	/*
	 * With an EAL lcore id the thread has a mempool cache. Without one it is slower, but not
	 * wrong.
	 */
	bool registered = rte_thread_register() == 0;

	lcore_loop(lcore);
	if (registered)
		rte_thread_unregister();
	return NULL;
}

static int launch_main(struct engine *e, struct lcore *l, unsigned int id)
{
	struct control *c = e->control;
	rte_cpuset_t cpus = rte_lcore_cpuset(id);
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&c->main_thread, NULL, main_lcore_thread, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error != 0)
		return error;
	c->main_thread_runs = true;
	pthread_setaffinity_np(c->main_thread, sizeof(cpus), &cpus);
	pthread_setname_np(c->main_thread, "uroce-lcore");
	return 0;
}

/* rte_eal_remote_launch() trusts the id that it gets. */
static bool lcore_ids_are_right(const struct engine *e)
{
	const unsigned int *id = e->control->options.lcore_ids;

	for (uint32_t i = 0; i < e->lcores; i++) {
		if (id[i] >= RTE_MAX_LCORE || !rte_lcore_is_enabled(id[i]))
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (id[j] == id[i])
				return false;
	}
	return true;
}

/* Launches all or none. */
static int launch(struct engine *e)
{
	const unsigned int *id = e->control->options.lcore_ids;
	uint32_t launched = 0;
	int error = 0;

	while (error == 0 && launched < e->lcores) {
		struct lcore *l = &e->lcore[launched];

		if (id[launched] == rte_get_main_lcore())
			error = launch_main(e, l, id[launched]);
		else
			error = -rte_eal_remote_launch(lcore_loop, l, id[launched]);
		launched += error == 0;
	}
	e->control->launched = launched;
	return error;
}

/* No thread polls from here on. The control path executes the lcores' messages itself (lcore.c). */
static void end_threads(struct engine *e)
{
	struct control *c = e->control;

	__atomic_store_n(&e->stopping, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < c->launched; i++) {
		lcore_wake(&e->lcore[i]);
		if (c->options.lcore_ids[i] != rte_get_main_lcore())
			rte_eal_wait_lcore(c->options.lcore_ids[i]);
	}
	if (c->main_thread_runs)
		pthread_join(c->main_thread, NULL);
	c->main_thread_runs = false;
	c->launched = 0;
	__atomic_store_n(&c->polled, 0, __ATOMIC_RELAXED);
}

int uroce_start(struct uroce_engine *u)
{
	struct engine *e;
	int error = live_enter(u, &e);

	if (error != 0)
		return error;
	if (e->control->launched > 0)
		error = EALREADY;
	else if (__atomic_load_n(&e->control->polled, __ATOMIC_RELAXED) != 0)
		error = EBUSY;
	else if (!lcore_ids_are_right(e))
		error = EINVAL;
	if (error == 0) {
		__atomic_store_n(&e->stopping, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&e->control->polled, UINT32_MAX, __ATOMIC_RELAXED);
		error = launch(e);
		if (error != 0)
			end_threads(e);
	}
	live_leave(e);
	return error;
}

/* Tells clients that no thread polls. The control thread still runs, and they may still leave. */
static void tell_clients(struct engine *e)
{
	pthread_mutex_lock(&e->control_lock);
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (e->client[i] != NULL)
			__atomic_store_n(&e->client[i]->page->closed, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&e->control_lock);
}

void running_stop(struct engine *e)
{
	if (__atomic_load_n(&e->control->polled, __ATOMIC_RELAXED) != UINT32_MAX)
		return;
	end_threads(e);
	tell_clients(e);
}

int uroce_stop(struct uroce_engine *u)
{
	struct engine *e;
	int error = live_enter(u, &e);

	if (error != 0)
		return error;
	running_stop(e);
	live_leave(e);
	return 0;
}

void uroce_set_adaptive(struct uroce_engine *u, bool adaptive)
{
	struct visit v = live_visit(u);

	if (v.engine == NULL)
		return;
	/* A flag; an lcore that sleeps looks at it when it wakes. */
	__atomic_store_n(&v.engine->adaptive, adaptive, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < v.engine->lcores; i++)
		lcore_wake(&v.engine->lcore[i]);
	live_part(v);
}

/* ---- the program's loop ---- */

/*
 * A call that finds another one in progress does not return -EBUSY, because the control path takes
 * turns, too.
 */
static int poll_once(struct lcore *l)
{
	uint32_t work;

	if (!lcore_sit(l))
		return 0;
	work = lcore_poll(l);
	lcore_rise(l);
	return (int)MIN_OF(work, (uint32_t)INT32_MAX);
}

int uroce_poll(struct uroce_engine *u, uint32_t lcore)
{
	struct visit v = live_visit(u);
	const struct engine *e = v.engine;
	int work;

	if (e == NULL)
		return -EINVAL;
	if (lcore >= e->lcores)
		work = -EINVAL;
	else if ((__atomic_load_n(&e->control->polled, __ATOMIC_RELAXED) >> lcore & 1) != 0)
		work = -EBUSY;
	else
		work = poll_once(&e->lcore[lcore]);
	live_part(v);
	return work;
}

/* ---- services ---- */

static int32_t service_poll(void *lcore)
{
	return poll_once(lcore) > 0 ? 0 : -EAGAIN;
}

static int make_service(struct engine *e, uint32_t lcore, uint32_t *id)
{
	struct rte_service_spec s = { .callback = service_poll,
				      .callback_userdata = &e->lcore[lcore] };
	int error;

	snprintf(s.name, sizeof(s.name), "uroce-%08x-%u", (uint32_t)e->id, lcore);
	error = -rte_service_component_register(&s, id);
	if (error != 0)
		return error;
	rte_service_component_runstate_set(*id, 1);
	e->control->service[lcore] = *id + 1;
	__atomic_fetch_or(&e->control->polled, 1u << lcore, __ATOMIC_RELAXED);
	return 0;
}

int uroce_service(struct uroce_engine *u, uint32_t lcore, uint32_t *service_id)
{
	struct engine *e;
	int error = service_id == NULL ? EINVAL : live_enter(u, &e);

	if (error != 0)
		return error;
	if (lcore >= e->lcores)
		error = EINVAL;
	else if (e->control->service[lcore] != 0)
		error = EEXIST;
	else if (__atomic_load_n(&e->control->polled, __ATOMIC_RELAXED) == UINT32_MAX)
		error = EBUSY;
	else
		error = make_service(e, lcore, service_id);
	live_leave(e);
	return error;
}

/* ---- the end ---- */

static nanotime leave_by(void)
{
	return clock_now() + LIMIT_LEAVE_POLL;
}

static void services_run(struct engine *e, bool run)
{
	for (uint32_t i = 0; i < e->lcores; i++)
		if (e->control->service[i] != 0)
			rte_service_component_runstate_set(e->control->service[i] - 1, run);
}

/* No service core is in a service, or comes into one. False: one stays too long; they run on. */
static bool services_stop(struct engine *e)
{
	nanotime until = leave_by();

	services_run(e, false);
	for (uint32_t i = 0; i < e->lcores; i++)
		while (e->control->service[i] != 0 &&
		       rte_service_may_be_active(e->control->service[i] - 1) == 1) {
			if (clock_now() > until) {
				services_run(e, true);
				return false;
			}
			sched_yield();
		}
	return true;
}

static void services_remove(struct engine *e)
{
	for (uint32_t i = 0; i < e->lcores; i++) {
		if (e->control->service[i] != 0)
			rte_service_component_unregister(e->control->service[i] - 1);
		e->control->service[i] = 0;
	}
}

/* What can fail comes first, and is taken back then. */
bool running_end(struct engine *e)
{
	if (!live_close(e, leave_by()) || !services_stop(e)) {
		live_open(e);
		return false;
	}
	services_remove(e);
	running_stop(e);
	return true;
}
