/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/share/disposal.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/limits.h"

struct disposal_job {
	void (*run)(void *arg);
	void *arg;
	STAILQ_ENTRY(disposal_job) link;
};

void disposal_open(struct disposal *d)
{
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->more, NULL);
	STAILQ_INIT(&d->jobs);
	d->runs = d->stops = false;
}

/* The next job. NULL: there are none, and none will come. */
static struct disposal_job *next_job(struct disposal *d)
{
	struct disposal_job *j;

	pthread_mutex_lock(&d->lock);
	while (STAILQ_EMPTY(&d->jobs) && !d->stops)
		pthread_cond_wait(&d->more, &d->lock);
	j = STAILQ_FIRST(&d->jobs);
	if (j != NULL)
		STAILQ_REMOVE_HEAD(&d->jobs, link);
	pthread_mutex_unlock(&d->lock);
	return j;
}

static void *run_jobs(void *arg)
{
	struct disposal_job *j;

	while ((j = next_job(arg)) != NULL) {
		j->run(j->arg);
		free(j);
	}
	return NULL;
}

/* The signals of an embedding program are for its own threads. */
static bool start(struct disposal *d)
{
	sigset_t all, old;

	if (d->runs)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	d->runs = pthread_create(&d->thread, NULL, run_jobs, d) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (d->runs)
		pthread_setname_np(d->thread, "uroce-disposal");
	return d->runs;
}

void dispose(struct disposal *d, void (*run)(void *arg), void *arg)
{
	struct disposal_job *j = malloc(sizeof(*j));

	if (j == NULL || !start(d)) {
		free(j);
		run(arg);
		return;
	}
	*j = (struct disposal_job){ .run = run, .arg = arg };
	pthread_mutex_lock(&d->lock);
	STAILQ_INSERT_TAIL(&d->jobs, j, link);
	pthread_cond_signal(&d->more);
	pthread_mutex_unlock(&d->lock);
}

static void close_it(void *fd)
{
	close((int)(intptr_t)fd);
}

void dispose_descriptor(struct disposal *d, int fd)
{
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_blocks < LIMIT_SMALL_DISPOSALS)
		close(fd);
	else
		dispose(d, close_it, (void *)(intptr_t)fd);
}

void disposal_close(struct disposal *d)
{
	pthread_mutex_lock(&d->lock);
	d->stops = true;
	pthread_cond_signal(&d->more);
	pthread_mutex_unlock(&d->lock);
	if (d->runs)
		pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->more);
	pthread_mutex_destroy(&d->lock);
}
