/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LINE 512

uint32_t campaign_units(const struct campaign *c)
{
	return c->settings * ((c->seeds + CAMPAIGN_UNIT - 1) / CAMPAIGN_UNIT);
}

void tally_add(struct tally *to, const struct tally *t)
{
	to->runs += t->runs;
	to->failed += t->failed;
	to->messages += t->messages;
	to->packets += t->packets;
	to->lost += t->lost;
	to->broken += t->broken;
	to->time += t->time;
}

static void first_line(const struct campaign *c, char line[LINE])
{
	snprintf(line, LINE,
		 "campaign of uroce sim: program %016" PRIx64 ", seed %" PRIu64
		 ", %u seeds of each of %u settings, %u messages\n",
		 c->program, c->seed, c->seeds, c->settings, c->messages);
}

static void count(const struct campaign *c, struct campaign_result *r, uint32_t unit,
		  const struct tally *t, const struct campaign_failure *failure, uint32_t failures)
{
	tally_add(&r->of[unit_setting(c, unit)], t);
	for (uint32_t i = 0; i < failures && r->failures < CAMPAIGN_FAILURES; i++)
		r->failure[r->failures++] = failure[i];
}

/* Failures whose unit line has not come yet. */
struct pending {
	struct campaign_failure of[CAMPAIGN_UNIT];
	uint32_t failures;
};

static bool read_failure(const struct campaign *c, const char *line, struct pending *p)
{
	struct campaign_failure *f = &p->of[p->failures];
	int at = 0;

	if (sscanf(line, "failure %u %" SCNu64 " %n", &f->setting, &f->seed, &at) < 2 || at == 0 ||
	    f->setting >= c->settings || p->failures == CAMPAIGN_UNIT)
		return false;
	snprintf(f->why, sizeof(f->why), "%.*s", (int)strcspn(line + at, "\n"), line + at);
	p->failures++;
	return true;
}

static bool read_unit(struct journal *j, const struct campaign *c, const char *line,
		      struct campaign_result *r, struct pending *p)
{
	struct tally t;
	uint32_t unit;

	if (sscanf(line,
		   "unit %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64,
		   &unit, &t.runs, &t.failed, &t.messages, &t.packets, &t.lost, &t.broken,
		   &t.time) != 8 ||
	    unit >= j->units || j->done[unit])
		return false;
	j->done[unit] = true;
	r->before += t.runs;
	count(c, r, unit, &t, p->of, p->failures);
	p->failures = 0;
	return true;
}

/* Returns the offset after the last complete unit; -1: a line is not in this format. */
static long read_units(struct journal *j, const struct campaign *c, FILE *in,
		       struct campaign_result *r)
{
	struct pending p = { .failures = 0 };
	char line[LINE];
	long end = ftell(in);

	while (fgets(line, sizeof(line), in) != NULL) {
		if (strchr(line, '\n') == NULL)
			return feof(in) ? end : -1;
		if (read_failure(c, line, &p))
			continue;
		if (!read_unit(j, c, line, r, &p))
			return -1;
		end = ftell(in);
	}
	return end;
}

static bool write_whole(int fd, const char *text, size_t octets)
{
	while (octets > 0) {
		ssize_t n = write(fd, text, octets);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		octets -= (size_t)n;
	}
	return true;
}

/* Reads the existing file, or begins it. Returns NULL, or what is wrong. */
static const char *begin(struct journal *j, const struct campaign *c, struct campaign_result *r)
{
	char ours[LINE], line[LINE] = "";
	FILE *in = fdopen(dup(j->fd), "r");
	long end;

	if (in == NULL)
		return strerror(errno);
	first_line(c, ours);
	if (fgets(line, sizeof(line), in) == NULL) {
		fclose(in);
		return write_whole(j->fd, ours, strlen(ours)) ? NULL : strerror(errno);
	}
	end = strcmp(line, ours) == 0 ? read_units(j, c, in, r) : -2;
	fclose(in);
	if (end == -2)
		return strncmp(line, ours, 23) == 0
			       ? "is of a campaign with other options or of another build"
			       : "is not the file of a campaign";
	if (end == -1)
		return "has a line that no campaign wrote";
	if (ftruncate(j->fd, end) != 0 || lseek(j->fd, end, SEEK_SET) != end)
		return strerror(errno);
	return NULL;
}

bool journal_open(struct journal *j, const struct campaign *c, struct campaign_result *r,
		  char why[256])
{
	const char *wrong = NULL;

	j->units = campaign_units(c);
	j->done = calloc(j->units, sizeof(*j->done));
	if (j->done == NULL)
		abort();
	j->fd = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (j->fd < 0)
		wrong = strerror(errno);
	else if (flock(j->fd, LOCK_EX | LOCK_NB) != 0)
		wrong = errno == EWOULDBLOCK ? "another campaign is at work on it"
					     : strerror(errno);
	else
		wrong = begin(j, c, r);
	if (wrong == NULL)
		return true;
	snprintf(why, 256, "%.160s: %s", c->path, wrong);
	journal_close(j);
	return false;
}

bool journal_add(struct journal *j, const struct campaign *c, struct campaign_result *r,
		 uint32_t unit, const struct tally *t, const struct campaign_failure *failure,
		 uint32_t failures)
{
	char text[(CAMPAIGN_UNIT + 1) * LINE];
	int n = 0;

	for (uint32_t i = 0; i < failures; i++)
		n += snprintf(text + n, LINE, "failure %u %" PRIu64 " %s\n", failure[i].setting,
			      failure[i].seed, failure[i].why);
	n += snprintf(text + n, LINE,
		      "unit %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		      " %" PRIu64 "\n",
		      unit, t->runs, t->failed, t->messages, t->packets, t->lost, t->broken,
		      t->time);
	j->done[unit] = true;
	count(c, r, unit, t, failure, failures);
	return write_whole(j->fd, text, (size_t)n);
}

void journal_close(struct journal *j)
{
	if (j->fd >= 0)
		close(j->fd);
	free(j->done);
	*j = (struct journal){ .fd = -1 };
}
