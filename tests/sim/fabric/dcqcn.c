/* SPDX-License-Identifier: BSD-3-Clause */
#include "dcqcn.h"

#define GAIN	   (1.0 / 256)
#define TIMER	   (55 * TIME_US)
#define OCTETS	   10e6
#define FAST_STEPS 5u
#define INCREASE   40e6 /* bits a second, each step */
#define HYPER	   400e6
#define RATE_LEAST 40e6

void dcqcn_init(struct dcqcn *d, double most)
{
	*d = (struct dcqcn){ .most = most,
			     .rate = most,
			     .target = most,
			     .alpha = 1,
			     .alpha_at = TIME_NEVER,
			     .step_at = TIME_NEVER };
}

static void step(struct dcqcn *d)
{
	if (d->steps > FAST_STEPS && d->octet_steps > FAST_STEPS)
		d->target += HYPER;
	else if (d->steps > FAST_STEPS || d->octet_steps > FAST_STEPS)
		d->target += INCREASE;
	if (d->target > d->most)
		d->target = d->most;
	d->rate = (d->rate + d->target) / 2;
}

/* Does what the timers would have done until now. */
static void catch_up(struct dcqcn *d, nanotime now)
{
	for (; d->alpha_at <= now; d->alpha_at += TIMER)
		d->alpha *= 1 - GAIN;
	for (; d->step_at <= now; d->step_at += TIMER) {
		d->steps++;
		step(d);
	}
}

void dcqcn_notified(struct dcqcn *d, nanotime now)
{
	catch_up(d, now);
	d->target = d->rate;
	d->rate *= 1 - d->alpha / 2;
	if (d->rate < RATE_LEAST)
		d->rate = RATE_LEAST;
	d->alpha = (1 - GAIN) * d->alpha + GAIN;
	d->alpha_at = now + TIMER;
	d->step_at = now + TIMER;
	d->steps = 0;
	d->octet_steps = 0;
	d->octets = 0;
}

void dcqcn_sent(struct dcqcn *d, double octets, nanotime now)
{
	catch_up(d, now);
	if (d->step_at == TIME_NEVER)
		return; /* no CNP has ever come */
	d->octets += octets;
	if (d->octets < OCTETS)
		return;
	d->octets -= OCTETS;
	d->octet_steps++;
	step(d);
}

double dcqcn_rate(struct dcqcn *d, nanotime now)
{
	catch_up(d, now);
	return d->rate;
}
