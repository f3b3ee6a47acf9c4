/* SPDX-License-Identifier: BSD-3-Clause */
#include "campaign.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "journal.h"

/* One process and its unit, in memory that the process shares with the campaign. */
struct slot {
	pid_t process; /* 0: none; only the campaign writes it */
	uint32_t unit;
	uint32_t next, end; /* seeds of the setting, from 0; `next` runs now */
	struct tally tally;
	struct campaign_failure failure[CAMPAIGN_UNIT];
	uint32_t failures;
};

struct crew {
	const struct campaign *c;
	struct campaign_result *r;
	struct journal journal;
	struct slot *slot; /* c->jobs of them */
	uint32_t next; /* the first unit that was not given out */
	uint32_t busy; /* slots */
};

static void note_failure(const struct campaign *c, struct slot *s, const char *why)
{
	struct campaign_failure *f = &s->failure[s->failures++];

	f->setting = unit_setting(c, s->unit);
	f->seed = c->seed + s->next;
	snprintf(f->why, sizeof(f->why), "%.239s", why);
	for (char *p = f->why; *p != '\0'; p++)
		if (*p == '\n')
			*p = ' '; /* a failure is one line of the journal */
	s->tally.runs++;
	s->tally.failed++;
}

/* The process ends with its campaign, and by a signal if a run hangs. */

/* Octets of freed memory that a process keeps for its next run. */
#define HOARD ((size_t)512 << 20)

static void run_one(const struct campaign *c, struct slot *s)
{
	struct sim_config config = c->config(unit_setting(c, s->unit));
	struct sim_result r;
	struct tally t;

	config.seed = c->seed + s->next;
	config.messages = c->messages;
	setitimer(ITIMER_PROF, &(struct itimerval){ .it_value.tv_sec = c->patience }, NULL);
	c->run(&config, &r);
	if (mallinfo2().arena > HOARD)
		malloc_trim(0);
	if (!r.ok) {
		note_failure(c, s, r.why);
		return;
	}
	t = (struct tally){ .runs = 1,
			    .messages = r.messages,
			    .packets = r.link.sent,
			    .lost = r.link.lost,
			    .broken = r.broken,
			    .time = r.time };
	tally_add(&s->tally, &t);
}

static _Noreturn void be_process(struct crew *w, struct slot *s, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPROF, SIG_DFL);
	close(w->journal.fd); /* the process's share of the lock is closed, too */
	/* Runs use the same pages again: new pages would take most of the time. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	for (; s->next < s->end && getppid() == parent; s->next++)
		run_one(w->c, s);
	_exit(0);
}

static bool begin(struct crew *w, struct slot *s)
{
	pid_t parent = getpid(), process;

	fflush(NULL); /* otherwise buffered text would be written twice */
	process = fork();
	if (process == 0)
		be_process(w, s, parent);
	if (process < 0)
		return false;
	s->process = process;
	w->busy++;
	return true;
}

/* The campaign. */

static bool give_unit(struct crew *w, struct slot *s)
{
	uint32_t first;

	while (w->next < w->journal.units && w->journal.done[w->next])
		w->next++;
	if (w->next == w->journal.units)
		return true;
	first = w->next / w->c->settings * CAMPAIGN_UNIT;
	*s = (struct slot){ .unit = w->next++,
			    .next = first,
			    .end = MIN_OF(first + CAMPAIGN_UNIT, w->c->seeds) };
	return begin(w, s);
}

static void tell(const struct crew *w)
{
	struct tally all = { 0 };

	if (w->c->progress == NULL)
		return;
	for (uint32_t i = 0; i < w->c->settings; i++)
		tally_add(&all, &w->r->of[i]);
	w->c->progress(all.runs, (uint64_t)w->c->settings * w->c->seeds, all.failed);
}

/* A process ended. Either its unit is complete, or its run failed and the next run goes on. */
static bool ended(struct crew *w, struct slot *s, int status)
{
	char why[64];

	s->process = 0;
	w->busy--;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
			snprintf(why, sizeof(why), "does not end in %u s", w->c->patience);
		else if (WIFSIGNALED(status))
			snprintf(why, sizeof(why), "%s", strsignal(WTERMSIG(status)));
		else
			snprintf(why, sizeof(why), "exits with %d", WEXITSTATUS(status));
		note_failure(w->c, s, why);
		s->next++;
	}
	if (s->next < s->end)
		return begin(w, s);
	if (!journal_add(&w->journal, w->c, w->r, s->unit, &s->tally, s->failure, s->failures))
		return false;
	tell(w);
	return give_unit(w, s);
}

static struct slot *slot_of(struct crew *w, pid_t process)
{
	for (uint32_t i = 0; i < w->c->jobs; i++)
		if (w->slot[i].process == process)
			return &w->slot[i];
	return NULL;
}

static bool work(struct crew *w)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < w->c->jobs; i++)
		ok = give_unit(w, &w->slot[i]);
	while (w->busy > 0) {
		int status;
		pid_t process = wait(&status);
		struct slot *s;

		if (process < 0 && errno != EINTR)
			return false;
		s = process > 0 ? slot_of(w, process) : NULL;
		if (s != NULL && ok)
			ok = ended(w, s, status);
		else if (s != NULL)
			w->busy--;
	}
	return ok;
}

bool campaign_execute(const struct campaign *c, struct campaign_result *r, char why[256])
{
	struct crew w = { .c = c, .r = r };
	size_t octets = c->jobs * sizeof(*w.slot);
	bool ok;

	*r = (struct campaign_result){
		.of = calloc(c->settings, sizeof(*r->of)),
		.failure = calloc(CAMPAIGN_FAILURES, sizeof(*r->failure)),
	};
	w.slot = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->of == NULL || r->failure == NULL || w.slot == MAP_FAILED)
		abort();
	ok = journal_open(&w.journal, c, r, why);
	if (ok) {
		ok = work(&w);
		if (!ok)
			snprintf(why, 256, "%.160s: %s", c->path, strerror(errno));
		journal_close(&w.journal);
	}
	munmap(w.slot, octets);
	return ok;
}

void campaign_free(struct campaign_result *r)
{
	free(r->of);
	free(r->failure);
	*r = (struct campaign_result){ 0 };
}
