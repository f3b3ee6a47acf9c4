/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/bits.h"
#include "drivers/client_memory/maps_kept.h"

#define LINE_OCTETS 512u /* the rest of a longer path is skipped */

/* ---- lines ---- */

static int open_file(struct maps *f, const char *path)
{
	int error;

	f->at = f->end = 0;
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	f->kept = f->fd < 0;
	if (!f->kept)
		return 0;
	error = errno;
	f->fd = maps_kept_take();
	return f->fd < 0 ? error : 0;
}

/* False: at the end, or on an error. */
static bool fill(struct maps *f)
{
	ssize_t n;

	do
		n = read(f->fd, f->text, sizeof(f->text));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	f->at = 0;
	f->end = (uint32_t)n;
	return true;
}

static bool next_line(struct maps *f, char line[LINE_OCTETS])
{
	size_t length = 0;
	bool ends = false, found = false;

	while (!ends && (f->at < f->end || fill(f))) {
		const char *text = f->text + f->at, *newline = memchr(text, '\n', f->end - f->at);
		size_t octets = newline != NULL ? (size_t)(newline - text) : f->end - f->at;
		size_t kept = MIN_OF(octets, LINE_OCTETS - 1 - length);

		ends = newline != NULL;
		memcpy(line + length, text, kept);
		length += kept;
		f->at += (uint32_t)octets + ends;
		found = true;
	}
	line[length] = '\0';
	return found;
}

/* ---- the line of a mapping ---- */

/*
 * Reads a number to this base and the character after it. NULL: it is not there, or p is NULL. Does
 * not use sscanf, because a registration reads every line, and sscanf would take three times as
 * long.
 */
static const char *take_number(const char *p, uint32_t base, char behind, uint64_t *out)
{
	const char *begin = p;
	uint64_t v = 0;

	for (; p != NULL; p++) {
		uint32_t digit;

		if (*p >= '0' && *p <= '9')
			digit = (uint32_t)(*p - '0');
		else if (base == 16 && *p >= 'a' && *p <= 'f')
			digit = (uint32_t)(*p - 'a') + 10;
		else
			break;
		v = v * base + digit;
	}
	*out = v;
	return p != NULL && p > begin && *p == behind ? p + 1 : NULL;
}

/* "rw-p " */
static const char *take_access(const char *p, struct mapping *m)
{
	if (p == NULL || strnlen(p, 5) < 5)
		return NULL;
	m->readable = p[0] == 'r';
	m->writable = p[1] == 'w';
	m->executable = p[2] == 'x';
	m->shared = p[3] == 's';
	return p[4] == ' ' ? p + 5 : NULL;
}

/*
 * Parses "7f00-8000 rw-p 00000000 00:01 1234 [stack]". Other lines of smaps begin with a capital
 * letter.
 */
static bool parse_header(const char *line, struct mapping *m)
{
	uint64_t start, end, device_major, device_minor;
	const char *p;

	memset(m, 0, sizeof(*m));
	p = take_number(line, 16, '-', &start);
	p = take_number(p, 16, ' ', &end);
	p = take_access(p, m);
	p = take_number(p, 16, ' ', &m->offset);
	p = take_number(p, 16, ':', &device_major);
	p = take_number(p, 16, ' ', &device_minor);
	p = take_number(p, 10, ' ', &m->inode);
	if (p == NULL)
		return false;
	m->start = start;
	m->end = end;
	m->device = makedev((unsigned int)device_major, (unsigned int)device_minor);
	p += strspn(p, " ");
	m->named = *p == '[';
	m->stack = strncmp(p, "[stack", 6) == 0;
	return true;
}

/* ---- maps ---- */

int maps_open(struct maps *f)
{
	return open_file(f, "/proc/self/maps");
}

bool maps_next(struct maps *f, struct mapping *m)
{
	char line[LINE_OCTETS];

	while (next_line(f, line))
		if (parse_header(line, m))
			return true;
	return false;
}

void maps_close(struct maps *f)
{
	if (f->kept)
		maps_kept_give();
	else
		close(f->fd);
}

/* ---- smaps ---- */

/*
 * proc(5): lo locked, dc not copied on fork, wf wiped on fork, io and pf device memory, ht huge
 * pages, gd grows down (a stack), um and uw watched by the program's own userfaultfd, mg merged
 * (KSM).
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
	char line[LINE_OCTETS];
	struct mapping m;
	struct maps f;
	int count = 0;
	bool current = false;

	if (open_file(&f, flags ? "/proc/self/smaps" : "/proc/self/maps") != 0)
		return -1;
	while (next_line(&f, line)) {
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
	maps_close(&f);
	return count;
}
