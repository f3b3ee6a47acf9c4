/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid.h"

#include <assert.h>

#include "base/bits.h"

struct bad_link {
	const char *name;
	double loss, duplicate, reorder, corrupt;
};

struct load {
	const char *name;
	double faults, fail_copies, xrc;
	uint32_t qps;
	bool unreliable;
};

#define ANY SIM_FROM_SEED

static const struct bad_link links[] = {
	{ "any", ANY, ANY, ANY, ANY },	     { "clean", 0, 0, 0, 0 },
	{ "lossy", 0.03, 0, 0, 0.01 },	     { "disordered", 0, 0.2, 0.2, 0 },
	{ "hopeless", 0.2, ANY, ANY, 0.05 },
};

static const struct load loads[] = {
	{ "any", ANY, ANY, ANY, 0, false },	      { "faults", 1, ANY, ANY, 0, false },
	{ "copies fail", ANY, 0.002, ANY, 0, false }, { "xrc", ANY, 0, 1, 0, false },
	{ "crowd", ANY, ANY, ANY, SIM_PAIRS, false }, { "unreliable", ANY, ANY, ANY, 0, true },
};

static_assert(ARRAY_SIZE(links) == GRID_LINKS && ARRAY_SIZE(loads) == GRID_LOADS,
	      "a setting is one of each");

const char *grid_name(uint32_t setting)
{
	static char name[32];

	snprintf(name, sizeof(name), "%s, %s", links[setting / GRID_LOADS].name,
		 loads[setting % GRID_LOADS].name);
	return name;
}

struct sim_config grid_config(uint32_t setting)
{
	const struct bad_link *l = &links[setting / GRID_LOADS];
	const struct load *d = &loads[setting % GRID_LOADS];
	struct sim_config c = sim_defaults();

	c.loss = l->loss;
	c.duplicate = l->duplicate;
	c.reorder = l->reorder;
	c.corrupt = l->corrupt;
	c.faults = d->faults;
	c.fail_copies = d->fail_copies;
	c.xrc = d->xrc;
	c.qps = d->qps;
	c.unreliable = d->unreliable;
	return c;
}
