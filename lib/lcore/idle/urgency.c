/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/idle/urgency.h"

/*
 * Not <sched.h>: its struct sched_param is also defined by the kernel's headers. libc has no
 * functions for sched_setattr(2).
 */
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/limits.h"

#define SLICE_NS  (LIMIT_SLICE_US * 1000u)
#define LATE	  (LIMIT_YIELD_LATE_US * TIME_US)
#define CROWD_FOR (LIMIT_CROWD_MS * TIME_MS)

const char *urgency_name(enum urgency u)
{
	static const char *const names[] = {
		[URGENCY_NORMAL] = "normal",
		[URGENCY_SLICE] = "slice",
		[URGENCY_UNKNOWN] = "unknown to the kernel",
		[URGENCY_REFUSED] = "refused",
		[URGENCY_OTHER_POLICY] = "another policy",
	};

	return u < sizeof(names) / sizeof(names[0]) ? names[u] : "?";
}

static bool get(struct sched_attr *a)
{
	*a = (struct sched_attr){ .size = sizeof(*a) };
	return syscall(SYS_sched_getattr, 0, a, sizeof(*a), 0) == 0;
}

/* Keeps the nice value and the flags. 0: the kernel's own slice. */
static bool set_slice(struct sched_attr *a, uint64_t slice)
{
	a->sched_runtime = slice;
	return syscall(SYS_sched_setattr, 0, a, 0) == 0;
}

enum urgency urgency_take(void)
{
	struct sched_attr a;

	if (!get(&a))
		return URGENCY_REFUSED;
	if (a.sched_policy != SCHED_NORMAL)
		return URGENCY_OTHER_POLICY;
	if (!set_slice(&a, SLICE_NS) || !get(&a))
		return URGENCY_REFUSED;
	/* Kernels without slices accept the call and ignore the value. */
	return a.sched_runtime == SLICE_NS ? URGENCY_SLICE : URGENCY_UNKNOWN;
}

void urgency_leave(enum urgency u)
{
	struct sched_attr a;

	if (u == URGENCY_SLICE && get(&a) && a.sched_policy == SCHED_NORMAL)
		set_slice(&a, 0);
}

nanotime crowd_yields_for(const struct crowd *c, bool napped)
{
	return (napped || c->late > 0 ? LIMIT_YIELD_LONGER_US : LIMIT_YIELD_US) * TIME_US;
}

void crowd_yielded(struct crowd *c, nanotime from, nanotime now)
{
	if (now - from < LATE) {
		c->late = 0;
		return;
	}
	/*
	 * A single late yield may be due to any short work on this core. Yielding is also best
	 * while other programs yield, too. So only several late yields in a row count.
	 */
	if (++c->late >= LIMIT_YIELDS_LATE)
		c->until = now + CROWD_FOR;
}
