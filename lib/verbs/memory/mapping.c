/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "drivers/client_memory/maps.h"
#include "queue/cancel.h"
#include "verbs/memory/mapping.h"

enum verdict {
	MORE,
	COVERED,
	FAULT
};

/* Mappings come in order of address. The range is known to be good up to *reached. */
static enum verdict judge(const struct mapping *m, uintptr_t *reached, uintptr_t end, bool write)
{
	if (m->end <= *reached)
		return MORE;
	if (m->start > *reached || !m->readable || (write && !m->writable))
		return FAULT;
	*reached = m->end;
	return *reached >= end ? COVERED : MORE;
}

static int check(uintptr_t address, size_t length, bool write)
{
	uintptr_t reached = address;
	enum verdict v = MORE;
	struct mapping m;
	struct maps f;
	int error = maps_open(&f);

	if (error != 0)
		return error;
	/* bounded: a process has at most max_map_count mappings */
	while (v == MORE && maps_next(&f, &m))
		v = judge(&m, &reached, address + length, write);
	maps_close(&f);
	return v == COVERED ? 0 : EFAULT;
}

int mapping_check(uintptr_t address, size_t length, bool write)
{
	int cancel = cancel_off(), error = check(address, length, write);

	cancel_restore(cancel);
	return error;
}
