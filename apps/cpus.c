/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

void cpus_write(const cpu_set_t *set, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (int i = 0; i < CPU_SETSIZE && n + 16 < size; i++) {
		int last = i;

		if (!CPU_ISSET(i, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
			last++;
		n += (size_t)snprintf(text + n, size - n, "%s%d", n > 0 ? "," : "", i);
		if (last > i)
			n += (size_t)snprintf(text + n, size - n, "-%d", last);
		i = last;
	}
}

static bool read_cpu(const char **text, long *cpu)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*cpu = strtol(*text, &end, 10);
	*text = end;
	return *cpu >= 0 && *cpu < CPU_SETSIZE;
}

bool cpus_read(const char *text, cpu_set_t *set)
{
	long first, last;

	CPU_ZERO(set);
	if (*text == '\0')
		return true;
	for (;; text++) {
		if (!read_cpu(&text, &first))
			return false;
		last = first;
		if (*text == '-' && (text++, !read_cpu(&text, &last)))
			return false;
		for (long i = first; i <= last; i++)
			CPU_SET((size_t)i, set);
		if (*text != ',')
			return *text == '\0';
	}
}
