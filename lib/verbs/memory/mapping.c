/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "drivers/client_memory/maps.h"
#include "queue/cancel.h"
#include "verbs/memory/mapping.h"

#define LOOKS	   8u
#define PAGES_ONCE 1024u

enum verdict {
	MORE,
	COVERED,
	FAULT
};

/*
 * Judges the next mapping; they come in order of address. The range is known to be good up to
 * *reached.
 */
static enum verdict judge(const struct mapping *m, uintptr_t *reached, uintptr_t end, bool write)
{
	if (m->end <= *reached)
		return MORE;
	if (m->start > *reached || !m->readable || (write && !m->writable))
		return FAULT;
	*reached = m->end;
	return *reached >= end ? COVERED : MORE;
}

/* Returns 0 or an errno. *reached: where the good part ends. */
static int look(uintptr_t address, size_t length, bool write, uintptr_t *reached)
{
	enum verdict v = MORE;
	struct mapping m;
	struct maps f;
	int error = maps_open(&f);

	*reached = address;
	if (error != 0)
		return error;
	/* bounded: a process has at most max_map_count mappings */
	while (v == MORE && maps_next(&f, &m))
		v = judge(&m, reached, address + length, write);
	maps_close(&f);
	return v == COVERED ? 0 : EFAULT;
}

/* mincore(2), unlike the file, waits for threads that change mappings. */
static bool is_mapped(uintptr_t address)
{
	unsigned char resident;

	return mincore((void *)(address & ~(uintptr_t)4095), 1, &resident) == 0;
}

/*
 * Since Linux 6.17 the file can be read while mappings change. Memory that another thread replaces
 * by mremap(2), as demotion does (promote_pages.c), is missing from all its lines for a moment. So
 * the file is read again if it shows a hole where mincore(2) shows none.
 */
static int check(uintptr_t address, size_t length, bool write)
{
	int error = EFAULT;
	uintptr_t reached;

	for (uint32_t i = 0; i < LOOKS; i++) {
		error = look(address, length, write, &reached);
		if (error != EFAULT || !is_mapped(reached))
			break;
	}
	return error;
}

/*
 * Without /proc, as after chroot(2), nothing shows what the pages allow. mincore(2) shows whether
 * they are there. A request that does what they do not allow fails later, or is carried out.
 */
static int check_presence(uintptr_t address, size_t length)
{
	unsigned char resident[PAGES_ONCE];
	uintptr_t at = address & ~(uintptr_t)4095;

	while (at < address + length) {
		size_t some = MIN_OF(address + length - at, PAGES_ONCE * (size_t)4096);

		if (mincore((void *)at, some, resident) != 0)
			return EFAULT;
		at += some;
	}
	return 0;
}

int mapping_check(uintptr_t address, size_t length, bool write)
{
	int cancel = cancel_off(), error = check(address, length, write);

	if (error == ENOENT || error == EACCES)
		error = check_presence(address, length);
	cancel_restore(cancel);
	return error;
}
