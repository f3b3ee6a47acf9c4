/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the engine accesses as peer memory for some region is neither promoted nor demoted.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"

#define PAGE  ((size_t)4096)
#define PAGES ((size_t)256)
#define PARTS 64u

static uint8_t *memory;

static void open_memory(void)
{
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq(memory, MAP_FAILED);
	memset(memory, 7, PAGES * PAGE);
}

TestSuite(promote_peer, .init = open_memory, .timeout = 60);

struct one {
	struct promote_region region;
	struct mr_backing backing[PARTS];
};

static uint32_t enter(struct one *o, size_t page, size_t pages, bool wanted)
{
	o->region = (struct promote_region){ (uintptr_t)memory + page * PAGE, pages * PAGE,
					     .backing = o->backing };
	promote_enter(&o->region, PARTS, wanted);
	return o->region.count;
}

static bool is_shared(size_t page)
{
	uintptr_t at = (uintptr_t)memory + page * PAGE;
	struct mapping m;

	cr_assert_eq(maps_read(at, at + 1, false, &m, 1), 1);
	return m.shared;
}

static void require_promotion(void)
{
	struct one o;

	if (enter(&o, 0, PAGES, true) == 0)
		cr_skip_test("this kernel or user may not use userfaultfd");
	promote_leave(&o.region);
}

Test(promote_peer, peer_memory_is_not_promoted)
{
	static struct one peer, other;

	require_promotion();
	cr_assert_eq(enter(&peer, 0, PAGES, false), 0);
	cr_assert_eq(enter(&other, 0, PAGES, true), 0, "it was promoted");
	promote_leave(&peer.region);
	promote_leave(&other.region);
	cr_assert_geq(enter(&other, 0, PAGES, true), 1, "it is no longer peer memory");
	promote_leave(&other.region);
}

Test(promote_peer, memory_around_peer_memory_is_promoted)
{
	static struct one peer, other;

	require_promotion();
	enter(&peer, 100, 1, false);
	cr_assert_geq(enter(&other, 0, PAGES, true), 2);
	cr_assert(is_shared(99));
	cr_assert_not(is_shared(100));
	cr_assert(is_shared(101));
	promote_leave(&other.region);
	cr_assert_not(is_shared(99));
	promote_leave(&peer.region);
}

/* Many regions in one page, and many with a page each: the last one to go releases the page. */
Test(promote_peer, every_region_of_peer_memory_counts)
{
	static struct one peer[64], other;

	require_promotion();
	for (uint32_t i = 0; i < 64; i++)
		enter(&peer[i], i < 32 ? 10 : i, i % 3 + 1, false);
	for (uint32_t i = 0; i < 64; i++) {
		enter(&other, 0, PAGES, true);
		cr_assert_not(is_shared(peer[i].region.start / PAGE - (uintptr_t)memory / PAGE));
		promote_leave(&other.region);
		promote_leave(&peer[i].region);
	}
	cr_assert_geq(enter(&other, 0, PAGES, true), 1);
	for (size_t i = 0; i < PAGES; i++)
		cr_assert(is_shared(i), "page %zu", i);
	promote_leave(&other.region);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		cr_assert_eq(memory[i], 7);
}

/* More regions than the table holds: nothing is promoted until they are gone. */
Test(promote_peer, nothing_is_promoted_when_the_table_is_full)
{
	enum {
		MANY = 5000
	};
	static struct one peer[MANY], other;
	uint8_t *many = mmap(NULL, 2 * MANY * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	require_promotion();
	for (size_t i = 0; i < MANY; i++) {
		peer[i].region = (struct promote_region){ (uintptr_t)many + 2 * i * PAGE, 1,
							  .backing = peer[i].backing };
		promote_enter(&peer[i].region, PARTS, false);
	}
	cr_assert_eq(enter(&other, 0, PAGES, true), 0);
	promote_leave(&other.region);
	for (size_t i = 0; i < MANY; i++)
		promote_leave(&peer[i].region);
	cr_assert_geq(enter(&other, 0, PAGES, true), 1);
	promote_leave(&other.region);
}

/*
 * Memory that was promoted before the region came, and is its peer memory, waits until the region
 * is gone.
 */
Test(promote_peer, demotion_waits_for_other_regions)
{
	static struct one peer, other;

	require_promotion();
	cr_assert_geq(enter(&other, 0, PAGES, true), 1);
	enter(&peer, 100, 1, false);
	promote_leave(&other.region);
	cr_assert(is_shared(100));
	promote_leave(&peer.region);
	for (size_t i = 0; i < PAGES; i++)
		cr_assert_not(is_shared(i), "page %zu", i);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		cr_assert_eq(memory[i], 7);
}

static size_t
	maps_anew; /* pages that another thread of the program maps anew during the next demotion */

ssize_t __real_pread64(int fd, void *to, size_t n, off_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t offset);

ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t offset)
{
	size_t octets = maps_anew * PAGE;

	maps_anew = 0;
	if (octets > 0) {
		cr_assert_eq(munmap(memory, octets), 0);
		cr_assert_eq(mmap(memory, octets, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			     memory);
		memset(memory, 9, octets);
	}
	return __real_pread64(fd, to, n, offset);
}

/*
 * Memory that waits to be demoted is not registered any more. The program may unmap it at any time,
 * and other memory may come to its address.
 */
Test(promote_peer, memory_that_waits_for_demotion_may_go)
{
	const size_t anew = 50;
	static struct one peer, other, third;

	require_promotion();
	cr_assert_geq(enter(&other, 0, PAGES, true), 1);
	enter(&peer, 100, 1, false);
	promote_leave(&other.region);
	maps_anew = anew;
	promote_leave(&peer.region);
	cr_assert_eq(maps_anew, 0);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		cr_assert_eq(memory[i], i < anew * PAGE ? 9 : 7, "octet %zu", i);
	enter(&third, 0, 1, false);
	promote_leave(&third.region);
	for (size_t i = 0; i < PAGES; i++)
		cr_expect_not(is_shared(i), "page %zu", i);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		cr_assert_eq(memory[i], i < anew * PAGE ? 9 : 7, "octet %zu", i);
}
