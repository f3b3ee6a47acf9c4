/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a process's engines, and structs whose size says which version a program knows. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lcore/lcore.h"
#include "engine/inside.h"

/* Engines that nothing looks into. */
static struct engine *some[LIMIT_EMBEDDED_ENGINES + 1];

static void begin(void)
{
	for (uint32_t i = 0; i <= LIMIT_EMBEDDED_ENGINES; i++)
		some[i] = malloc(sizeof(*some[i]));
}

static void end(void)
{
	for (uint32_t i = 0; i <= LIMIT_EMBEDDED_ENGINES; i++) {
		live_remove(some[i]);
		free(some[i]);
	}
}

/* A place for the engine, as for one that is complete. */
static int add(struct engine *e)
{
	int error = live_add(e);

	if (error != 0)
		return error;
	live_open(e);
	live_leave(e);
	return 0;
}

TestSuite(live, .init = begin, .fini = end, .timeout = 30);

/* The memory that a call would look into. */
static const struct engine *found(const struct uroce_engine *u)
{
	struct visit v = live_visit(u);

	if (v.engine != NULL)
		live_part(v);
	return v.engine;
}

static struct uroce_engine *held(uint32_t i)
{
	return (struct uroce_engine *)some[i];
}

Test(live, an_engine_is_found_while_it_lives)
{
	cr_expect_null(found(NULL));
	cr_expect_null(found(held(0)));
	cr_assert_eq(add(some[0]), 0);
	cr_expect_eq(found(held(0)), some[0]);
	cr_expect_null(found(held(1)));
	live_remove(some[1]); /* which is not there */
	cr_expect_eq(found(held(0)), some[0]);
	live_remove(some[0]);
	cr_expect_null(found(held(0)));
}

Test(live, there_is_room_for_so_many)
{
	for (uint32_t i = 0; i < LIMIT_EMBEDDED_ENGINES; i++)
		cr_assert_eq(add(some[i]), 0);
	cr_expect_eq(add(some[LIMIT_EMBEDDED_ENGINES]), ENOSPC);
	for (uint32_t i = 0; i < LIMIT_EMBEDDED_ENGINES; i++)
		cr_expect_eq(found(held(i)), some[i]);
	live_remove(some[3]);
	cr_expect_eq(add(some[LIMIT_EMBEDDED_ENGINES]), 0);
	cr_expect_eq(found(held(LIMIT_EMBEDDED_ENGINES)), some[LIMIT_EMBEDDED_ENGINES]);
}

/* Nobody gets in before it is complete. */
Test(live, a_reserved_place_is_closed_and_busy)
{
	struct engine *e;

	cr_assert_eq(live_add(some[0]), 0);
	cr_expect_null(found(held(0)));
	cr_expect_eq(live_enter(held(0), &e), EBUSY);
	live_remove(some[0]);
	cr_assert_eq(add(some[0]), 0);
	cr_expect_eq(found(held(0)), some[0]);
}

Test(live, one_call_changes_an_engine_at_a_time)
{
	struct engine *e = NULL;

	cr_expect_eq(live_enter(NULL, &e), EINVAL);
	cr_expect_eq(live_enter(held(0), &e), EINVAL);
	add(some[0]);
	add(some[1]);
	cr_assert_eq(live_enter(held(0), &e), 0);
	cr_expect_eq(e, some[0]);
	cr_expect_eq(live_enter(held(0), &e), EBUSY);
	cr_expect_eq(live_enter(held(1), &e), 0, "another engine");
	live_leave(some[0]);
	cr_expect_eq(live_enter(held(0), &e), 0);
	cr_expect_eq(live_enter(held(1), &e), EBUSY, "it was not left");
}

/* uroce_destroy() leaves nothing behind: the next engine in its place is not busy. */
Test(live, what_is_removed_is_not_busy_any_more)
{
	struct engine *e;

	add(some[0]);
	cr_assert_eq(live_enter(held(0), &e), 0);
	live_remove(some[0]);
	cr_expect_eq(live_enter(held(0), &e), EINVAL);
	live_leave(some[0]);
	add(some[1]);
	cr_expect_eq(live_enter(held(1), &e), 0);
}

/* No call is in an engine that is freed afterwards, and none enters while this is checked. */
Test(live, an_engine_ends_when_its_visitors_are_gone)
{
	struct visit first, second, other;

	add(some[0]);
	add(some[1]);
	first = live_visit(held(0));
	second = live_visit(held(0));
	other = live_visit(held(1));
	cr_expect_not(live_close(some[0], clock_now()));
	cr_expect_null(found(held(0)), "it is closed");
	cr_expect_eq(found(held(1)), some[1]);
	live_open(some[0]);
	cr_expect_eq(found(held(0)), some[0]);
	live_part(first);
	cr_expect_not(live_close(some[0], clock_now()), "one of two left");
	live_part(second);
	cr_expect(live_close(some[0], clock_now()));
	live_part(other);
}

/* A thread that is inside until it is told to leave. */
struct visitor {
	struct uroce_engine *engine;
	pthread_t thread;
	sem_t is_in, may_leave;
	bool found; /* the engine */
	useconds_t stays; /* ... so much longer */
};

static void *stay(void *arg)
{
	struct visitor *v = arg;
	struct visit visit = live_visit(v->engine);

	v->found = (const void *)visit.engine == v->engine;
	sem_post(&v->is_in);
	sem_wait(&v->may_leave);
	usleep(v->stays);
	if (v->found)
		live_part(visit);
	return NULL;
}

static void come(struct visitor *v, uint32_t engine)
{
	v->engine = held(engine);
	sem_init(&v->is_in, 0, 0);
	sem_init(&v->may_leave, 0, 0);
	cr_assert_eq(pthread_create(&v->thread, NULL, stay, v), 0);
	sem_wait(&v->is_in);
	cr_assert(v->found);
}

static void leave(struct visitor *v)
{
	sem_post(&v->may_leave);
	pthread_join(v->thread, NULL);
}

/* More threads than doors: each is counted, wherever it came in. */
Test(live, visitors_of_all_threads_count)
{
	static struct visitor v[20];

	add(some[0]);
	for (int i = 0; i < 20; i++)
		come(&v[i], 0);
	for (int i = 0; i < 20; i++) {
		cr_expect_not(live_close(some[0], clock_now()), "%d of 20 left", i);
		leave(&v[i]);
	}
	cr_expect(live_close(some[0], clock_now()));
	/* The next engine in this place is open. */
	live_remove(some[0]);
	add(some[1]);
	cr_expect_eq(found(held(1)), some[1]);
	cr_expect_null(found(held(0)));
}

static void *come_and_go(void *engine)
{
	for (uint32_t i = 0; i < 20000; i++) {
		struct visit v = live_visit(engine);

		if (v.engine != NULL)
			live_part(v);
	}
	return NULL;
}

/* Many of these threads share a door. */
Test(live, no_visit_is_lost)
{
	pthread_t thread[24];

	add(some[0]);
	for (int i = 0; i < 24; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, come_and_go, held(0)), 0);
	for (int i = 0; i < 24; i++)
		pthread_join(thread[i], NULL);
	cr_expect(live_close(some[0], clock_now()), "somebody is counted who has left");
}

Test(live, the_end_waits_for_a_visitor)
{
	static struct visitor v = { .stays = 20000 };

	add(some[0]);
	come(&v, 0);
	sem_post(&v.may_leave);
	cr_expect(live_close(some[0], clock_now() + 20 * TIME_S));
	pthread_join(v.thread, NULL);
}

/* ---- structs with a size ---- */

struct known {
	size_t size;
	uint32_t first, second;
};

struct newer {
	struct known known;
	uint8_t more[8];
};

static bool take(struct known *to, const void *from, char *why, size_t why_size)
{
	memset(to, 0xee, sizeof(*to));
	return struct_take(to, sizeof(*to), from, "known", why, why_size);
}

Test(struct_take, what_an_older_program_does_not_know_is_zero)
{
	struct known from = { .first = 7, .second = 8 }, to;
	char why[80];

	from.size = sizeof(from);
	cr_assert(take(&to, &from, why, sizeof(why)));
	cr_expect_eq(memcmp(&to, &from, sizeof(to)), 0);
	cr_expect_str_eq(why, "");
	from.size = offsetof(struct known, second);
	cr_assert(take(&to, &from, why, sizeof(why)));
	cr_expect_eq(to.first, 7);
	cr_expect_eq(to.second, 0, "behind its end");
	from.size = sizeof(size_t) + 1; /* in the middle of a member */
	cr_assert(take(&to, &from, why, sizeof(why)));
	cr_expect_eq(to.first, 7);
}

Test(struct_take, a_newer_program_may_not_ask_for_what_is_unknown)
{
	struct newer from = { .known = { .first = 7 } };
	struct known to;
	char why[160];

	from.known.size = sizeof(from);
	cr_assert(take(&to, &from, why, sizeof(why)), "it asks for nothing new");
	cr_expect_eq(to.first, 7);
	for (uint32_t i = 0; i < sizeof(from.more); i++) {
		from.more[i] = 1;
		cr_expect_not(take(&to, &from, why, sizeof(why)), "octet %u", i);
		cr_expect_not_null(strstr(why, "known has a member"), "%s", why);
		cr_expect_not_null(strstr(why, "after 16 octets"), "%s", why);
		from.more[i] = 0;
	}
}

Test(struct_take, a_struct_has_a_size)
{
	struct known from = { .first = 7 }, to;
	char why[160];

	cr_expect_not(take(&to, NULL, why, sizeof(why)));
	cr_expect_not_null(strstr(why, "known.size must be sizeof(struct known), not 0"), "%s",
			   why);
	for (from.size = 0; from.size <= sizeof(size_t); from.size++)
		cr_expect_not(take(&to, &from, why, sizeof(why)), "size %zu", from.size);
}
