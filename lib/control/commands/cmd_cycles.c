/* SPDX-License-Identifier: BSD-3-Clause */
/* Cycles by stage: lcores count them, and tell in messages. */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "control/control.h"
#include "control/network/peers.h"
#include "control/statistics.h"
#include "lcore/cycles.h"
#include "protocol/command.h"

static void start(struct engine *e, uint32_t every, uint32_t milliseconds)
{
	struct cycles_wish wish = { .every = milliseconds > 0 ? every : 0,
				    .until = clock_now() + milliseconds * TIME_MS };

	for (uint32_t i = 0; i < e->lcores; i++)
		lcore_call(&e->lcore[i], cycles_start, &wish);
}

static void read_all(struct engine *e, struct reply_cycles *reply)
{
	struct cycles_reading r = { .running = false };

	for (uint32_t i = 0; i < e->lcores; i++)
		lcore_call(&e->lcore[i], cycles_read, &r);
	reply->hz = rte_get_tsc_hz();
	reply->rounds = r.sum.rounds;
	reply->idle_rounds = r.sum.idle_rounds;
	reply->idle_cycles = r.sum.idle_cycles;
	reply->interrupted_rounds = r.sum.interrupted_rounds;
	reply->interrupted_cycles = r.sum.interrupted_cycles;
	reply->running = r.running;
	reply->switch_cycles = (uint32_t)cycles_of_switch();
	for (uint32_t i = 0; i < STAGE_COUNT; i++) {
		reply->stage[i].cycles = r.sum.cycles[i];
		reply->stage[i].passes = r.sum.passes[i];
	}
}

int cmd_cycles(struct call *call)
{
	const struct request_cycles *r = (const struct request_cycles *)call->request;
	struct reply_cycles *reply = (struct reply_cycles *)&call->reply;

	if (!call_sees_all(call))
		return call_fail(call, EPERM,
				 "only root and the engine's user may measure its cycles");
	if (r->action != CYCLES_START && r->action != CYCLES_READ)
		return call_fail(call, EINVAL, "no such action: %u", r->action);
	if (r->action == CYCLES_START && (r->every < 1 || r->every > CYCLES_EVERY))
		return call_fail(call, EINVAL, "one round in %u: must be in 1 .. %u", r->every,
				 CYCLES_EVERY);
	if (r->action == CYCLES_START && r->milliseconds > CYCLES_MS)
		return call_fail(call, EINVAL, "%u ms: must be in 0 .. %u", r->milliseconds,
				 CYCLES_MS);
	read_all(call->engine, reply);
	if (r->action == CYCLES_READ)
		return 0;
	if (reply->running && r->milliseconds > 0)
		return call_fail(call, EBUSY, "cycles are being measured already");
	start(call->engine, r->every, r->milliseconds);
	return 0;
}

void uroce_cycles_start(struct uroce_engine *u, uint32_t every, uint32_t milliseconds)
{
	struct engine *e = (struct engine *)u;

	pthread_mutex_lock(&e->control_lock);
	start(e, every, milliseconds);
	pthread_mutex_unlock(&e->control_lock);
}

void uroce_cycles(struct uroce_engine *u, struct reply_cycles *out)
{
	struct engine *e = (struct engine *)u;

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&e->control_lock);
	read_all(e, out);
	pthread_mutex_unlock(&e->control_lock);
}
