/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/path.h"

void path_init(struct path *p)
{
	memset(p, 0, sizeof(*p));
}

/* The way may have changed: what was the least a while ago is forgotten after two periods. */
static void note_least(struct path *p, nanotime rtt, nanotime now)
{
	if (now >= p->min_until) {
		p->min_rtt = p->samples == 0 ? rtt : p->min_now;
		p->min_now = rtt;
		p->min_until = now + LIMIT_PATH_MIN_S * TIME_S;
	}
	p->min_now = MIN_OF(p->min_now, rtt);
	p->min_rtt = MIN_OF(p->min_rtt, rtt);
}

void path_rtt(struct path *p, nanotime rtt, nanotime now)
{
	nanotime off;

	rtt = MIN_OF(MAX_OF(rtt, 1), LIMIT_PATH_RTT_MS * TIME_MS);
	note_least(p, rtt, now);
	if (p->samples++ == 0) {
		p->srtt = rtt;
		p->rttvar = rtt / 2;
		return;
	}
	off = rtt > p->srtt ? rtt - p->srtt : p->srtt - rtt;
	p->rttvar += off / 4 - p->rttvar / 4;
	p->srtt += rtt / 8 - p->srtt / 8;
	assert(p->srtt > 0 && p->min_rtt > 0 && "0 means that nothing is known");
}
