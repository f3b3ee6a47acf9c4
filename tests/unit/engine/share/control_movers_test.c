/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which programs have a mover (hostile H-123). Memory that the engine cannot map may block for ever, so no
 * lcore copies it: every program whose queue pairs can name such memory has a mover before its key is known.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/control.h"
#include "rig/export_rig.h"

/* Threads that can be made, and those that were asked for beyond them. */
static uint32_t threads_left = UINT32_MAX, threads_refused;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	uint32_t left = __atomic_load_n(&threads_left, __ATOMIC_RELAXED);

	if (left == 0) {
		__atomic_fetch_add(&threads_refused, 1, __ATOMIC_RELAXED);
		return EAGAIN;
	}
	__atomic_store_n(&threads_left, left - 1, __ATOMIC_RELAXED);
	return __real_pthread_create(thread, attr, run, arg);
}

TestSuite(control_movers, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

/* A program of the engine's own user, with one context. */
struct program {
	int fd, token;
	uint32_t number, context;
};

static struct program begin(void)
{
	struct reply_hello r;
	struct program p;
	int arena;

	p.fd = attach_keeping(&r, &arena);
	close(arena);
	p.number = r.client;
	p.context = open_with_token(p.fd, &p.token);
	return p;
}

static void end(struct program *p)
{
	close(p->token);
	close(p->fd);
}

static bool has_mover(const struct program *p)
{
	const struct client *c = ((struct engine *)engine)->client[p->number];

	return __atomic_load_n(&c->mover, __ATOMIC_ACQUIRE) != NULL;
}

static uint32_t alloc_pd(const struct program *p)
{
	uint32_t pd;

	cr_assert_eq(ask_handle(p->fd, COMMAND_ALLOC_PD, p->context, &pd), 0);
	return pd;
}

/* From here on p has a handle of that domain of the other program's, too. */
static uint32_t share_pd(const struct program *p, const struct program *with, uint32_t pd)
{
	uint32_t imported, mine;

	cr_assert_eq(import_context(p->fd, with->token, &imported), 0);
	cr_assert_eq(import(p->fd, COMMAND_IMPORT_PD, imported, pd, &mine), 0);
	return mine;
}

static void share_xrcd(const struct program *p, int file)
{
	struct request_open_xrcd q = { .context = p->context, .flags = XRCD_CREATE };
	struct carrier_descriptors in = { .fd = { file }, .count = 1 };
	struct reply_handle r;

	cr_assert_eq(ask(p->fd, COMMAND_OPEN_XRCD, &q.h, sizeof(q), &r.h, sizeof(r), &in, NULL), 0);
}

static int register_memory(const struct program *p, uint32_t pd)
{
	uint32_t mr;

	return reg_mr(p->fd, pd, ACCESS_LOCAL_WRITE, 64, &mr);
}

/*
 * hostile H-123: a target of the first takes a receive from an SRQ of the second, in an XRC domain, and
 * that receive names memory of the third, in a protection domain of the second and the third.
 */
Test(control_movers, a_program_that_shares_with_a_sharer_has_one)
{
	struct program first = begin(), second = begin(), third = begin();
	int file = memfd_create("domain", MFD_CLOEXEC);
	uint32_t pd = alloc_pd(&second), mine;

	share_xrcd(&first, file);
	share_xrcd(&second, file);
	mine = share_pd(&third, &second, pd);
	cr_expect_not(has_mover(&first), "nobody has memory that could block");
	cr_assert_eq(register_memory(&third, mine), 0);
	cr_expect(has_mover(&third));
	cr_expect(has_mover(&second));
	cr_expect(has_mover(&first));
	end(&first);
	end(&second);
	end(&third);
	close(file);
}

/* hostile H-123: ... the memory was there first, and the second comes to share with both */
Test(control_movers, a_program_that_joins_two_others_gives_one_to_both)
{
	struct program first = begin(), second = begin(), third = begin();
	int file = memfd_create("domain", MFD_CLOEXEC);
	uint32_t pd = alloc_pd(&third);

	cr_assert_eq(register_memory(&third, pd), 0);
	share_xrcd(&first, file);
	share_xrcd(&second, file);
	cr_expect_not(has_mover(&first));
	cr_expect_not(has_mover(&second));
	share_pd(&second, &third, pd);
	cr_expect(has_mover(&second));
	cr_expect(has_mover(&first));
	end(&first);
	end(&second);
	end(&third);
	close(file);
}

/* hostile H-123: memory is not registered if a user of its key would make an lcore copy it */
Test(control_movers, no_key_while_a_sharer_has_none)
{
	struct program first = begin(), second = begin();
	uint32_t pd = alloc_pd(&first);

	share_pd(&second, &first, pd);
	__atomic_store_n(&threads_left, 1, __ATOMIC_RELAXED);
	cr_expect_eq(register_memory(&first, pd), EAGAIN);
	cr_expect_eq(threads_refused, 1);
	cr_expect_eq(register_memory(&first, pd), EAGAIN, "nor when it tries again");
	__atomic_store_n(&threads_left, UINT32_MAX, __ATOMIC_RELAXED);
	cr_expect_not(has_mover(&second));
	cr_expect_eq(register_memory(&first, pd), 0);
	cr_expect(has_mover(&second));
	end(&first);
	end(&second);
}
