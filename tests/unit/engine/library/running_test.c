/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores are polled by threads of the engine, whose start and end programs see, or by a program. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/control_rig.h"
#include "engine/inside.h"
#include "queue/arena.h"

static struct engine *inside;
static struct lcore *lcore;

static void begin(void)
{
	snprintf(path, sizeof(path), "/tmp/uroce-running-test-%d.sock", getpid());
	control_rig_make();
	inside = (struct engine *)engine;
	lcore = &inside->lcore[0];
}

TestSuite(running, .init = begin, .fini = control_rig_close, .timeout = 60);

static uint64_t polls(void)
{
	return __atomic_load_n(&lcore->stats.polls, __ATOMIC_RELAXED);
}

/* The lcore is polled this many more times. */
static bool comes_to(uint64_t more)
{
	nanotime until = clock_now() + ENOUGH_MS * TIME_MS;
	uint64_t from = polls();

	while (polls() - from < more) {
		if (clock_now() > until)
			return false;
		usleep(100);
	}
	return true;
}

Test(running, a_thread_polls_from_start_to_stop)
{
	uint64_t last;

	last = polls();
	usleep(1000);
	cr_expect_eq(polls(), last, "nobody polls before");
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(uroce_start(engine), 0);
		cr_expect(comes_to(3), "nobody polls");
		cr_assert_eq(uroce_stop(engine), 0);
		last = polls();
		usleep(1000);
		cr_expect_eq(polls(), last, "somebody polls after the end");
		cr_expect_eq(uroce_poll(engine, 0), 0);
		cr_expect_eq(polls(), last + 1);
	}
}

/* The thread of this process with this name; its status according to the kernel. */
static bool thread_status(const char *name, char *status, size_t size)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	char file[280], wanted[32];
	bool found = false;

	snprintf(wanted, sizeof(wanted), "Name:\t%s\n", name);
	while (!found && (task = readdir(tasks)) != NULL) {
		size_t n = 0;
		FILE *f;

		snprintf(file, sizeof(file), "/proc/self/task/%s/status", task->d_name);
		f = fopen(file, "r");
		if (f == NULL)
			continue;
		n = fread(status, 1, size - 1, f);
		status[n] = '\0';
		fclose(f);
		found = strncmp(status, wanted, strlen(wanted)) == 0;
	}
	closedir(tasks);
	return found;
}

/* A program's signals are for its own threads. */
Test(running, the_main_lcores_thread_takes_no_signal)
{
	unsigned long long blocked = 0;
	char status[4096];
	const char *line;
	sigset_t own;

	cr_assert_eq(uroce_start(engine), 0);
	cr_assert(comes_to(1));
	cr_assert(thread_status("uroce-lcore", status, sizeof(status)), "no thread has the name");
	line = strstr(status, "SigBlk:");
	cr_assert_not_null(line);
	cr_assert_eq(sscanf(line, "SigBlk: %llx", &blocked), 1);
	cr_expect_neq(blocked & 1 << (SIGTERM - 1), 0);
	cr_expect_neq(blocked & 1 << (SIGINT - 1), 0);
	pthread_sigmask(SIG_BLOCK, NULL, &own);
	cr_expect_not(sigismember(&own, SIGTERM), "the caller's are as they were");
	cr_assert_eq(uroce_stop(engine), 0);
	cr_expect_not(thread_status("uroce-lcore", status, sizeof(status)), "it is still there");
}

static uint32_t closed(const struct client_page *p)
{
	return __atomic_load_n(&p->closed, __ATOMIC_ACQUIRE);
}

/* A program that reads what the engine tells all programs. */
struct reader {
	struct client_page *page;
	int fd, arena;
};

static struct reader attach_reader(void)
{
	struct reply_hello hello;
	struct reader r;

	r.fd = attach_keeping(&hello, &r.arena);
	r.page = mmap(NULL, sizeof(*r.page), PROT_READ, MAP_SHARED, r.arena, 0);
	cr_assert_neq(r.page, MAP_FAILED);
	return r;
}

static void end_reader(const struct reader *r)
{
	close(r->fd);
	munmap(r->page, sizeof(*r->page));
	close(r->arena);
}

static uint32_t processor(const struct client_page *p)
{
	return __atomic_load_n(&p->lcore[0].processor, __ATOMIC_RELAXED);
}

static bool comes_to_processor(const struct client_page *p, uint32_t wanted)
{
	nanotime until = clock_now() + ENOUGH_MS * TIME_MS;

	while (processor(p) != wanted) {
		if (clock_now() > until)
			return false;
		usleep(100);
	}
	return true;
}

static void move_to(pid_t thread, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	cr_assert_eq(sched_setaffinity(thread, sizeof(one), &one), 0);
}

static pid_t lcore_thread(void)
{
	char status[4096];
	int tid = 0;

	cr_assert(thread_status("uroce-lcore", status, sizeof(status)), "no thread has the name");
	cr_assert_eq(sscanf(strstr(status, "\nPid:"), "\nPid: %d", &tid), 1);
	return tid;
}

/*
 * Those that attach while it stays where it is, and those that it moves under. It has longer than ENOUGH_MS, so that it
 * says what is wrong.
 */
Test(running, programs_are_told_where_the_lcore_runs, .timeout = 200)
{
	struct reader early, late;
	cpu_set_t all;
	pid_t thread;

	cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	cr_assert_eq(uroce_start(engine), 0);
	early = attach_reader();
	thread = lcore_thread();
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		move_to(thread, cpu);
		cr_assert(comes_to_processor(early.page, (uint32_t)cpu + 1),
			  "processor %d: the word is %u", cpu, processor(early.page));
		late = attach_reader();
		cr_assert(comes_to_processor(late.page, (uint32_t)cpu + 1),
			  "processor %d, attached later: the word is %u", cpu,
			  processor(late.page));
		end_reader(&late);
	}
	cr_assert_eq(uroce_stop(engine), 0);
	expect_serving();
	late = attach_reader();
	cr_expect_eq(processor(late.page), 0, "no thread polls");
	end_reader(&late);
	end_reader(&early);
}

/* Attached programs are told of the end, and may leave then. */
Test(running, programs_are_told_that_no_thread_polls)
{
	struct reader r;

	cr_assert_eq(uroce_start(engine), 0);
	r = attach_reader();
	cr_expect_eq(closed(r.page), 0);
	cr_assert_eq(uroce_stop(engine), 0);
	cr_expect_eq(closed(r.page), 1);
	expect_serving();
	end_reader(&r);
	expect_counts(0, 0, 0, 0);
}

/* The engine was not started, so programs are not told that its lcores stopped. */
Test(running, stopping_what_does_not_run_tells_nobody)
{
	struct reader r = attach_reader();

	cr_expect_eq(uroce_stop(engine), 0);
	cr_expect_eq(closed(r.page), 0);
	end_reader(&r);
}

/* A sleeping lcore is told that it should not sleep. */
Test(running, adaptive_is_changed_while_it_runs)
{
	nanotime until = clock_now() + ENOUGH_MS * TIME_MS;

	cr_assert_eq(uroce_start(engine), 0);
	while (__atomic_load_n(&lcore->stats.sleeps, __ATOMIC_RELAXED) == 0 && clock_now() < until)
		usleep(1000);
	cr_assert_gt(__atomic_load_n(&lcore->stats.sleeps, __ATOMIC_RELAXED), 0, "it never slept");
	uroce_set_adaptive(engine, false);
	/* a sleeping one wakes ten times a second */
	cr_expect(comes_to(100000), "it does not poll all the time");
	uroce_set_adaptive(NULL, true);
	cr_expect_not(__atomic_load_n(&inside->adaptive, __ATOMIC_ACQUIRE));
	uroce_set_adaptive(engine, true);
	cr_expect(__atomic_load_n(&inside->adaptive, __ATOMIC_ACQUIRE));
}

/* A poll during another poll does nothing, and an engine is not destroyed while a thread polls it. */
Test(running, a_polling_thread_holds_the_engine)
{
	struct visit polling = live_visit(engine); /* as uroce_poll() is one */
	uint64_t before = polls();

	cr_assert(lcore_sit(lcore));
	cr_expect_eq(uroce_poll(engine, 0), 0);
	cr_expect_eq(polls(), before);
	cr_expect_eq(uroce_destroy(engine), EBUSY);
	lcore_rise(lcore);
	live_part(polling);
	cr_expect_eq(uroce_poll(engine, 0), 0);
	cr_expect_eq(polls(), before + 1, "it lives on");
	cr_expect_eq(uroce_poll(engine, 1), -EINVAL);
	cr_expect_eq(uroce_poll(engine, UINT32_MAX), -EINVAL);
}

/* "EBUSY, and then nothing was done" */
Test(running, an_engine_that_cannot_be_destroyed_runs_on)
{
	struct visit inside_it = live_visit(engine);
	struct reader r;

	cr_assert_eq(uroce_start(engine), 0);
	r = attach_reader();
	cr_expect_eq(uroce_destroy(engine), EBUSY);
	live_part(inside_it);
	cr_expect_eq(closed(r.page), 0, "programs are told that it is gone");
	cr_expect_eq(uroce_start(engine), EALREADY, "its threads have ended");
	cr_assert_eq(uroce_stop(engine), 0);
	end_reader(&r);
}

/* ... which is also true of services. */
Test(running, a_service_of_an_engine_that_cannot_be_destroyed_stays)
{
	struct visit inside_it = live_visit(engine);
	uint32_t id, again;

	cr_assert_eq(uroce_service(engine, 0, &id), 0);
	cr_expect_eq(uroce_destroy(engine), EBUSY);
	live_part(inside_it);
	cr_expect_eq(uroce_service(engine, 0, &again), EEXIST, "it is gone");
}
