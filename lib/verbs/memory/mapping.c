/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "queue/cancel.h"
#include "verbs/memory/mapping.h"

#define READ_OCTETS 16384u

/* The first columns of a line of /proc/self/maps: "start-end rwxp ". */
struct mapping {
	uintptr_t start, end;
	bool read, write;
};

static const char *take_hex(const char *p, uintptr_t *out)
{
	uintptr_t v = 0;

	for (;; p++) {
		if (*p >= '0' && *p <= '9')
			v = v << 4 | (uintptr_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			v = v << 4 | (uintptr_t)(*p - 'a' + 10);
		else
			break;
	}
	*out = v;
	return p;
}

static void take_line(const char *line, struct mapping *m)
{
	const char *p = take_hex(line, &m->start);

	p = take_hex(p + 1, &m->end);
	m->read = p[1] == 'r';
	m->write = p[2] == 'w';
}

enum verdict {
	MORE,
	COVERED,
	FAULT
};

/* Lines come in the order of addresses; *reached is how far the range is known to be good. */
static enum verdict judge(const struct mapping *m, uintptr_t *reached, uintptr_t end, bool write)
{
	if (m->end <= *reached)
		return MORE;
	if (m->start > *reached || !m->read || (write && !m->write))
		return FAULT;
	*reached = m->end;
	return *reached >= end ? COVERED : MORE;
}

static enum verdict scan(int fd, uintptr_t start, uintptr_t end, bool write)
{
	char buffer[READ_OCTETS + 1];
	size_t held = 0;
	ssize_t n;

	/* bounded: a process has at most max_map_count mappings */
	while ((n = read(fd, buffer + held, READ_OCTETS - held)) > 0) {
		char *line = buffer, *newline;

		held += (size_t)n;
		buffer[held] = '\0';
		while ((newline = strchr(line, '\n')) != NULL) {
			struct mapping m;
			enum verdict v;

			take_line(line, &m);
			v = judge(&m, &start, end, write);
			if (v != MORE)
				return v;
			line = newline + 1;
		}
		held -= (size_t)(line - buffer);
		memmove(buffer, line, held);
	}
	return FAULT;
}

static int check(uintptr_t address, size_t length, bool write)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	enum verdict v;

	if (fd < 0)
		return errno;
	v = scan(fd, address, address + length, write);
	close(fd);
	return v == COVERED ? 0 : EFAULT;
}

int mapping_check(uintptr_t address, size_t length, bool write)
{
	int cancel = cancel_off(), error = check(address, length, write);

	cancel_restore(cancel);
	return error;
}
