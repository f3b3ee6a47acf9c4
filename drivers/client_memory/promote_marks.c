/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What madvise(2) and mlock(2) have set on a mapping of the promoted file. Only smaps shows that.
 * For it, the kernel walks the page tables of everything mapped below, which takes milliseconds for
 * each GiB. So the mapping's first page is mapped a second time, at an address below all others,
 * and smaps is read up to there:
 *
 *	0x10000            program, heap, libraries ...       the mapping
 *	[page]  - - - - - - - - - - - - - - - - - - - - - -  [page|    |    ]
 *	the same marks, and nothing below it
 *
 * mremap(2) with an old size of 0 makes such copies of shared mappings, marks included. If there is
 * no room at such an address, or the limit of locked memory is reached, smaps is read up to the
 * mapping itself.
 */
#include "base/memory_call.h"
#include "drivers/client_memory/promote_private.h"

#define LOW_FIRST 0x10000u /* vm.mmap_min_addr of all distributions; its multiples are tried, too */
#define LOW_TRIES 16u

/* Maps a free low page, or returns NULL. An older kernel may choose another address. */
static void *low_page(void)
{
	for (uintptr_t i = 1; i <= LOW_TRIES; i++) {
		void *low = (void *)(i * LOW_FIRST); /* NOLINT(performance-no-int-to-ptr) */
		void *page = memory_map(low, PAGE, PROT_NONE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (page == low)
			return page;
		if (page != MAP_FAILED)
			memory_unmap(page, PAGE);
	}
	return NULL;
}

/* Reads the marks of that page's mapping. */
static bool read_at(uintptr_t page, struct mapping *m)
{
	struct mapping seen;

	if (maps_read(page, page + PAGE, true, &seen, 1) != 1 || !promote_is_ours(&seen))
		return false;
	m->special = seen.special;
	m->marks = seen.marks;
	return true;
}

bool promote_read_marks(struct mapping *m)
{
	void *low = low_page();
	bool done = low != NULL && memory_show_again((void *)m->start, PAGE, low) &&
		    read_at((uintptr_t)low, m);

	if (low != NULL)
		memory_unmap(low, PAGE);
	return done || read_at(m->start, m);
}
