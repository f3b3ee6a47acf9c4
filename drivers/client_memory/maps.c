/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LINE_OCTETS 512u /* a path may be longer: its rest is skipped */

struct lines {
	int fd;
	uint32_t at, end;
	char buffer[4096];
};

/* The next octet of the file, -1 at its end or on an error. */
static int next_octet(struct lines *l)
{
	if (l->at == l->end) {
		ssize_t n;

		do
			n = read(l->fd, l->buffer, sizeof(l->buffer));
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			return -1;
		l->at = 0;
		l->end = (uint32_t)n;
	}
	return (uint8_t)l->buffer[l->at++];
}

static bool next_line(struct lines *l, char *line)
{
	uint32_t n = 0;
	int c;

	while ((c = next_octet(l)) >= 0 && c != '\n')
		if (n < LINE_OCTETS - 1)
			line[n++] = (char)c;
	line[n] = '\0';
	return c >= 0 || n > 0;
}

/* "7f00-8000 rw-p 00000000 00:01 1234   [stack]"; other lines of smaps begin with a capital. */
static bool parse_header(const char *line, struct mapping *m)
{
	unsigned long start, end;
	unsigned long long offset, inode;
	unsigned int device_major, device_minor;
	char access[5];

	if (sscanf(line, "%lx-%lx %4s %llx %x:%x %llu", &start, &end, access, &offset,
		   &device_major, &device_minor, &inode) != 7)
		return false;
	memset(m, 0, sizeof(*m));
	m->start = start;
	m->end = end;
	m->offset = offset;
	m->inode = inode;
	m->device = makedev(device_major, device_minor);
	m->readable = access[0] == 'r';
	m->writable = access[1] == 'w';
	m->executable = access[2] == 'x';
	m->shared = access[3] == 's';
	m->stack = strstr(line, "[stack") != NULL;
	return true;
}

/*
 * proc(5): lo locked, dc not copied on fork, wf wiped on fork, io and pf device memory, ht huge
 * pages, gd grows down (a stack), um and uw under a userfaultfd of the program's own, mg merged.
 */
static bool is_special(const char *flags)
{
	static const char *const special[] = { " lo", " dc", " wf", " io", " pf",
					       " ht", " gd", " um", " uw", " mg" };

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (strstr(flags, special[i]) != NULL)
			return true;
	return false;
}

static uint32_t marks_of(const char *flags)
{
	static const struct {
		const char *name;
		uint32_t mark;
	} marks[] = {
		{ " lo", MARK_LOCKED }, { " dc", MARK_DONTFORK }, { " dd", MARK_DONTDUMP },
		{ " hg", MARK_HUGE },	{ " nh", MARK_NOT_HUGE }, { " sr", MARK_SEQUENTIAL },
		{ " rr", MARK_RANDOM },
	};
	uint32_t found = 0;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strstr(flags, marks[i].name) != NULL)
			found |= marks[i].mark;
	return found;
}

static void take_flags(struct mapping *m, const char *flags)
{
	m->special = is_special(flags);
	m->marks = marks_of(flags);
}

int maps_read(uintptr_t from, uintptr_t to, bool flags, struct mapping *out, int max)
{
	struct lines l = { .fd = open(flags ? "/proc/self/smaps" : "/proc/self/maps",
				      O_RDONLY | O_CLOEXEC) };
	char line[LINE_OCTETS];
	struct mapping m;
	int count = 0;
	bool current = false;

	if (l.fd < 0)
		return -1;
	while (next_line(&l, line)) {
		if (line[0] >= 'A' && line[0] <= 'Z') {
			if (current && strncmp(line, "VmFlags:", 8) == 0)
				take_flags(&out[count - 1], line + 8);
			continue;
		}
		if (!parse_header(line, &m))
			continue;
		if (m.start >= to)
			break;
		current = m.end > from;
		if (!current)
			continue;
		if (count == max)
			break;
		out[count++] = m;
	}
	close(l.fd);
	return count;
}
