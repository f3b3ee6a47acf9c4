/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of an engine: hugepages by NUMA node, and what may be locked. */
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "tree.h"

#define MIB	    UINT64_C(1048576)
/*
 * Memory that an engine of one lcore takes, most of it for 16384 packet buffers: at least (MTU
 * 1500), and at MTU 4200, where they have up to 8.6 KiB.
 */
#define LEAST_MIB   64u
#define ENGINE_MIB  256u
#define ADVISED_MIB 1024u

static const struct {
	const char *folder;
	const char *name;
	uint64_t kib;
} sizes[] = {
	{ "hugepages-2048kB", "2 MiB", 2048 },
	{ "hugepages-1048576kB", "1 GiB", 1048576 },
};

struct hugepages {
	uint64_t all, free, near; /* KiB; near: the part of `free` on the node of the port */
	char text[192]; /* the pages of each node and size */
};

static void add(struct hugepages *h, const char *text)
{
	size_t n = strlen(h->text);

	snprintf(h->text + n, sizeof(h->text) - n, "%s%s", n > 0 ? ", " : "", text);
}

/* `node` -1: the machine has no NUMA nodes. */
static void count(const struct machine *m, const char *place, int32_t node, struct hugepages *h)
{
	int64_t all, free;
	char text[96];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (!tree_number(m, &all, "%s/hugepages/%s/nr_hugepages", place, sizes[i].folder) ||
		    !tree_number(m, &free, "%s/hugepages/%s/free_hugepages", place,
				 sizes[i].folder) ||
		    all <= 0)
			continue;
		h->all += (uint64_t)all * sizes[i].kib;
		h->free += (uint64_t)free * sizes[i].kib;
		if (m->node < 0 || node < 0 || node == m->node)
			h->near += (uint64_t)free * sizes[i].kib;
		if (node >= 0)
			snprintf(text, sizeof(text),
				 "node %d: %" PRId64 " of %" PRId64 " of %s free", node, free, all,
				 sizes[i].name);
		else
			snprintf(text, sizeof(text), "%" PRId64 " of %" PRId64 " of %s free", free,
				 all, sizes[i].name);
		add(h, text);
	}
}

static void count_all(const struct machine *m, struct hugepages *h)
{
	DIR *nodes = tree_folder(m, "/sys/devices/system/node");
	char place[64];
	const char *name;
	int32_t node, n = 0;

	memset(h, 0, sizeof(*h));
	while ((name = tree_next(nodes)) != NULL)
		if (tree_numbered(name, "node", &node))
			n = MAX_OF(n, node + 1);
	if (nodes != NULL)
		closedir(nodes);
	for (node = 0; node < n; node++) { /* in their order, which a folder does not have */
		snprintf(place, sizeof(place), "/sys/devices/system/node/node%d", node);
		count(m, place, node, h);
	}
	if (n == 0)
		count(m, "/sys/kernel/mm", -1, h);
}

static void mend_hugepages(const struct machine *m, struct finding *f)
{
	uint32_t pages = ADVISED_MIB / 2;

	if (m->node >= 0 && tree_has(m, "/sys/devices/system/node/node%d", m->node))
		finding_mend(f,
			     "echo %u > /sys/devices/system/node/node%d/hugepages/hugepages-2048kB/"
			     "nr_hugepages",
			     pages, m->node);
	else
		finding_mend(f, "sysctl -w vm.nr_hugepages=%u", pages);
}

/* Without an IOMMU the device needs physical addresses, which other memory may change. */
static bool needs_hugepages(const struct machine *m)
{
	char driver[64];
	enum bound_to bound = device_bound_to(m, driver, sizeof(driver));

	return m->kind == PORT_PCI &&
	       (bound == BOUND_UIO || (bound == BOUND_VFIO && vfio_is_unsafe(m)));
}

void check_hugepages(const struct machine *m, struct finding *f)
{
	struct hugepages h;

	count_all(m, &h);
	if (h.all == 0)
		finding_set(f, needs_hugepages(m) ? CHECK_MISSING : CHECK_SLOW, "there are none%s",
			    needs_hugepages(m)
				    ? ", and a device without an IOMMU works with nothing else"
				    : ", so an engine uses ordinary memory");
	else if (m->engine_error == 0 || h.near >= ENGINE_MIB * MIB / 1024)
		finding_set(f, CHECK_OK, "%s", h.text);
	else if (h.free == 0)
		finding_set(f, needs_hugepages(m) ? CHECK_MISSING : CHECK_SLOW,
			    "all are in use (%s)", h.text);
	else if (h.free < ENGINE_MIB * MIB / 1024)
		finding_set(f, h.free < LEAST_MIB * MIB / 1024 ? CHECK_MISSING : CHECK_SLOW,
			    "an engine takes hugepages if one is free, and these are less than its "
			    "%u MiB at MTU 4200 (%s)",
			    ENGINE_MIB, h.text);
	else
		finding_set(f, CHECK_SLOW, "too few on node %d, the port's node (%s)", m->node,
			    h.text);
	if (f->verdict != CHECK_OK)
		mend_hugepages(m, f);
}

void check_memory_lock(const struct machine *m, struct finding *f)
{
	if (m->kind != PORT_PCI)
		return;
	if (m->may_lock || m->memlock == UINT64_MAX)
		finding_set(f, CHECK_OK, "no limit");
	else if (m->memlock >= ENGINE_MIB * MIB)
		finding_set(f, CHECK_OK, "%" PRIu64 " MiB", m->memlock / MIB);
	else
		finding_set(
			f, m->memlock < LEAST_MIB * MIB ? CHECK_MISSING : CHECK_SLOW,
			"VFIO pins an engine's memory, %u MiB at MTU 4200, and this user may lock "
			"%" PRIu64 " KiB",
			ENGINE_MIB, m->memlock / 1024);
	if (f->verdict != CHECK_OK)
		finding_mend(f, "ulimit -l unlimited (as root), or LimitMEMLOCK=infinity in the "
				"unit");
}
