/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of regions and windows from a client that does not use the library: wrong and
 * foreign handles, values out of range, truncated messages; and the objects left afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "control/control.h"
#include "rig/control_rig.h"
#include "lcore/inside.h"

TestSuite(control_memory, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

static int rereg(int fd, struct request_rereg_mr q, struct reply_reg_mr *r)
{
	return ask(fd, COMMAND_REREG_MR, &q.h, sizeof(q), &r->h, sizeof(*r), NULL, NULL);
}

static int alloc_mw(int fd, uint32_t pd, uint32_t type, struct reply_alloc_mw *r)
{
	struct request_alloc_mw q = { .pd = pd, .type = type };

	return ask(fd, COMMAND_ALLOC_MW, &q.h, sizeof(q), &r->h, sizeof(*r), NULL, NULL);
}

static int alloc_null(int fd, uint32_t pd, struct reply_reg_mr *r)
{
	struct request_handle q = { .handle = pd };

	return ask(fd, COMMAND_ALLOC_NULL_MR, &q.h, sizeof(q), &r->h, sizeof(*r), NULL, NULL);
}

static int advise(int fd, struct request_advise_mr *q, struct reply_advise_mr *r)
{
	return ask(fd, COMMAND_ADVISE_MR, &q->h, sizeof(*q), &r->h, sizeof(*r), NULL, NULL);
}

static uint64_t place(void)
{
	return (uintptr_t)memory;
}

/* hostile H-99: names of memory that go round. */
Test(control_memory, changes_of_a_region)
{
	int fd = attach(), other = attach();
	struct objects o, foreign;
	struct reply_reg_mr r;
	struct request_rereg_mr good = { .address = place(), .length = 4096, .iova = place() };
	uint32_t second_pd;

	make_objects(fd, &o);
	make_objects(other, &foreign);
	cr_assert_eq(ask_handle(fd, COMMAND_ALLOC_PD, o.context, &second_pd), 0);
	good.mr = o.mr;
	good.pd = second_pd;
	good.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE;
	const struct {
		const char *what;
		uint32_t mr, flags, pd, access;
		uint64_t address, length;
		int error;
	} cases[] = {
		{ "no handle", 0, REREG_ACCESS, 0, 0, 0, 0, EINVAL },
		{ "a wild handle", UINT32_MAX, REREG_ACCESS, 0, 0, 0, 0, EINVAL },
		{ "nothing to change", o.mr, 0, 0, 0, 0, 0, EINVAL },
		{ "an unknown change", o.mr, 8, 0, 0, 0, 0, EINVAL },
		{ "no PD", o.mr, REREG_PD, 0, 0, 0, 0, EINVAL },
		{ "a wild PD", o.mr, REREG_PD, 12345, 0, 0, 0, EINVAL },
		{ "no length", o.mr, REREG_TRANSLATION, 0, 0, place(), 0, EINVAL },
		{ "no address", o.mr, REREG_TRANSLATION, 0, 0, 0, 4096, EINVAL },
		{ "a wrapping range", o.mr, REREG_TRANSLATION, 0, 0, place(), UINT64_MAX, EINVAL },
		{ "all memory", o.mr, REREG_TRANSLATION | REREG_ACCESS, 0, ACCESS_ON_DEMAND, 0,
		  UINT64_MAX, EINVAL },
		{ "unknown access", o.mr, REREG_ACCESS, 0, 1u << 13, 0, 0, EINVAL },
		{ "flushes to persistence", o.mr, REREG_ACCESS, 0, ACCESS_FLUSH_PERSISTENT, 0, 0,
		  EOPNOTSUPP },
		{ "remote writing alone", o.mr, REREG_ACCESS, 0, ACCESS_REMOTE_ATOMIC, 0, 0,
		  EINVAL },
		{ "a new PD", o.mr, REREG_PD, second_pd, 0, 0, 0, 0 },
		{ "everything", o.mr, REREG_PD | REREG_ACCESS | REREG_TRANSLATION, o.pd,
		  ACCESS_LOCAL_WRITE, place(), 100, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request_rereg_mr q = good;

		q.mr = cases[i].mr;
		q.flags = cases[i].flags;
		q.pd = cases[i].pd;
		q.access = cases[i].access;
		q.address = q.iova = cases[i].address;
		q.length = cases[i].length;
		cr_expect_eq(rereg(fd, q, &r), cases[i].error, "%s", cases[i].what);
	}
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_PD, second_pd, NULL), 0, "left again");
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_PD, o.pd, NULL), EBUSY);
	expect_counts(2, 2, 2, 2);
	close(fd);
	close(other);
	expect_counts(0, 0, 0, 0);
}

static const struct region *region_at(uint32_t key)
{
	const struct region *r = key_find(&((struct engine *)engine)->keys, key);

	cr_assert_not_null(r);
	return r;
}

/* The engine's address of the first octet of a region; NULL: it is peer memory. */
static void *first_octet(uint32_t key)
{
	return region_at(key)->piece[0].direct;
}

/* A file that was mapped for reading is not written through that mapping later. */
Test(control_memory, a_file_for_reading_becomes_peer_memory_for_writing)
{
	union {
		struct request_reg_mr r;
		uint8_t octets[sizeof(struct request_reg_mr) + sizeof(struct mr_backing)];
	} q = { 0 };
	int fd = attach(), file = memfd_create("test", MFD_ALLOW_SEALING);
	struct carrier_descriptors in = { .count = 1, .fd = { file } };
	struct objects o;
	struct reply_reg_mr r;

	cr_assert_eq(ftruncate(file, 4096), 0);
	cr_assert_eq(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	make_objects(fd, &o);
	q.r.pd = o.pd;
	q.r.access = ACCESS_REMOTE_READ;
	q.r.address = q.r.iova = place();
	q.r.length = 4096;
	q.r.backings = 1;
	q.r.backing[0] = (struct mr_backing){ .length = 4096, .fd = 0 };
	cr_assert_eq(ask(fd, COMMAND_REG_MR, &q.r.h, sizeof(q), &r.h, sizeof(r), &in, NULL), 0);
	cr_expect_not_null(first_octet(r.lkey));
	cr_expect_eq(rereg(fd,
			   (struct request_rereg_mr){ .mr = r.handle,
						      .flags = REREG_ACCESS,
						      .access = ACCESS_LOCAL_WRITE },
			   &r),
		     0);
	cr_expect_null(first_octet(r.lkey));
	/* moved to a file, and cut short: refused, and as it was */
	cr_expect_eq(rereg(fd,
			   (struct request_rereg_mr){
				   .mr = r.handle, .flags = REREG_ACCESS, .backings = 3 },
			   &r),
		     EPROTO);
	close(file);
	close(fd);
	expect_counts(0, 0, 0, 0);
}

/* ---- promoted memory that the program takes back ---- */

static int leave(int fd, uint32_t leaves)
{
	struct request_leave_promoted q = { .leaves = leaves };
	struct reply_empty r;

	return ask(fd, COMMAND_LEAVE_PROMOTED, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int pass_promoted(int fd, int file)
{
	struct carrier_descriptors in = { .count = 1, .fd = { file } };
	struct request_empty q = { 0 };
	struct reply_empty r;

	return ask(fd, COMMAND_PROMOTED_FILE, &q.h, sizeof(q), &r.h, sizeof(r), &in, NULL);
}

/* A region in a program's promoted file, named when it had taken its memory back `leaves` times. */
static struct reply_reg_mr reg_promoted(int fd, uint32_t pd, uint32_t leaves)
{
	union {
		struct request_reg_mr r;
		uint8_t octets[sizeof(struct request_reg_mr) + sizeof(struct mr_backing)];
	} q = { .r = { .pd = pd,
		       .access = ACCESS_LOCAL_WRITE,
		       .address = place(),
		       .iova = place(),
		       .length = 4096,
		       .backings = 1,
		       .leaves = leaves } };
	struct reply_reg_mr r;

	q.r.backing[0] =
		(struct mr_backing){ .length = 4096, .fd = BACKING_PROMOTED, .writable = 1 };
	cr_assert_eq(ask(fd, COMMAND_REG_MR, &q.r.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
	return r;
}

static void rereg_promoted(int fd, uint32_t mr, uint32_t leaves)
{
	union {
		struct request_rereg_mr r;
		uint8_t octets[sizeof(struct request_rereg_mr) + sizeof(struct mr_backing)];
	} q = { .r = { .mr = mr,
		       .flags = REREG_TRANSLATION,
		       .address = place(),
		       .iova = place(),
		       .length = 4096,
		       .backings = 1,
		       .leaves = leaves } };
	struct reply_reg_mr r;

	q.r.backing[0] =
		(struct mr_backing){ .length = 4096, .fd = BACKING_PROMOTED, .writable = 1 };
	cr_assert_eq(ask(fd, COMMAND_REREG_MR, &q.r.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
}

/* Complete regions keep their keys; those being registered become peer memory. */
Test(control_memory, promoted_memory_becomes_peer_memory)
{
	int fd = attach(), file = memfd_create("test", MFD_ALLOW_SEALING);
	struct reply_reg_mr old, late, new;
	struct objects o;

	cr_assert_eq(ftruncate(file, 4096), 0);
	cr_assert_eq(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	make_objects(fd, &o);
	cr_expect_eq(leave(fd, 1), EINVAL, "it has no such file");
	cr_assert_eq(pass_promoted(fd, file), 0);
	old = reg_promoted(fd, o.pd, 0);
	cr_expect_not_null(first_octet(old.lkey));
	cr_expect_eq(leave(fd, 0), EINVAL);
	cr_expect_not_null(first_octet(old.lkey));
	cr_expect_eq(leave(fd, 1), 0);
	cr_expect_null(first_octet(old.lkey));
	cr_expect_eq(leave(fd, 1), EINVAL, "twice");
	late = reg_promoted(fd, o.pd, 0);
	cr_expect_null(first_octet(late.lkey), "it was on its way");
	new = reg_promoted(fd, o.pd, 1);
	cr_expect_not_null(first_octet(new.lkey));
	rereg_promoted(fd, old.handle, 1);
	cr_expect_not_null(first_octet(old.lkey));
	cr_expect_eq(leave(fd, 7), 0);
	cr_expect_null(first_octet(old.lkey));
	cr_expect_null(first_octet(new.lkey));
	rereg_promoted(fd, new.handle, 6);
	cr_expect_null(first_octet(new.lkey));
	cr_expect_eq(ask_handle(fd, COMMAND_DEREG_MR, old.handle, NULL), 0);
	cr_expect_eq(leave(fd, 8), 0);
	close(file);
	close(fd);
	expect_counts(0, 0, 0, 0);
}

/* The work of one LEAVE_PROMOTED is bounded. */
Test(control_memory, pieces_in_a_programs_promoted_file_are_limited)
{
	int fd = attach(), file = memfd_create("test", MFD_ALLOW_SEALING);
	struct client *c = NULL;
	struct objects o;

	cr_assert_eq(ftruncate(file, 4096), 0);
	cr_assert_eq(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	make_objects(fd, &o);
	for (uint32_t i = 0; c == NULL && i < LIMIT_CLIENTS; i++)
		c = ((struct engine *)engine)->client[i];
	cr_assert_not_null(c);
	cr_assert_eq(pass_promoted(fd, file), 0);
	cr_expect_not_null(first_octet(reg_promoted(fd, o.pd, 0).lkey));
	cr_expect_eq(c->objects->promoted_uses, 1);
	c->objects->promoted_uses += LIMIT_PROMOTED_USES - 1;
	cr_expect_null(first_octet(reg_promoted(fd, o.pd, 0).lkey));
	c->objects->promoted_uses -= LIMIT_PROMOTED_USES - 1;
	cr_expect_not_null(first_octet(reg_promoted(fd, o.pd, 0).lkey));
	cr_expect_eq(ask_handle(fd, COMMAND_DEREG_MR, o.mr, NULL), 0);
	cr_expect_eq(c->objects->promoted_uses, 2);
	close(file);
	close(fd);
	expect_counts(0, 0, 0, 0);
}

/* hostile H-117: handles of others. */
Test(control_memory, windows_and_null_regions)
{
	int fd = attach(), other = attach();
	struct objects o;
	struct reply_alloc_mw w[2];
	struct reply_reg_mr null, theirs;
	uint32_t pd;

	make_objects(fd, &o);
	expect_counts(2, 1, 1, 1);
	cr_expect_eq(alloc_mw(fd, o.pd, 0, &w[0]), EINVAL);
	cr_expect_eq(alloc_mw(fd, o.pd, 3, &w[0]), EINVAL);
	cr_expect_eq(alloc_mw(fd, o.pd, UINT32_MAX, &w[0]), EINVAL);
	cr_expect_eq(alloc_null(fd, 0, &null), EINVAL);
	for (uint32_t guess = 0; guess < 70; guess++) {
		cr_expect_eq(alloc_mw(other, guess, 1, &w[0]), EINVAL);
		cr_expect_eq(alloc_null(other, guess, &null), EINVAL);
		cr_expect_eq(ask_handle(other, COMMAND_DEALLOC_MW, guess, NULL), EINVAL);
	}
	expect_counts(2, 1, 1, 1);
	cr_assert_eq(alloc_mw(fd, o.pd, 1, &w[0]), 0);
	cr_assert_eq(alloc_mw(fd, o.pd, 2, &w[1]), 0);
	cr_assert_eq(alloc_null(fd, o.pd, &null), 0);
	cr_expect_neq(w[0].rkey >> 8, w[1].rkey >> 8);
	cr_expect_eq(null.rkey, 0);
	expect_counts(2, 1, 1, 4);
	cr_assert_eq(ask_handle(other, COMMAND_ALLOC_PD, open_context(other), &pd), 0);
	cr_assert_eq(alloc_null(other, pd, &theirs), 0);
	cr_expect_neq(region_at(theirs.lkey)->client, region_at(null.lkey)->client,
		      "each is its own program's");
	cr_expect_eq(ask_handle(other, COMMAND_DEREG_MR, theirs.handle, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_MW, null.handle + 10, NULL), EINVAL);
	cr_expect_eq(rereg(fd,
			   (struct request_rereg_mr){ .mr = null.handle, .flags = REREG_ACCESS },
			   &null),
		     EINVAL, "a null region stays");
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_MW, w[0].handle, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_MW, w[0].handle, NULL), EINVAL, "twice");
	expect_counts(2, 1, 1, 3);
	close(fd); /* with a window and a null region left */
	expect_counts(1, 0, 0, 0);
	close(other);
}

/* hostile H-99: names of memory that go round. */
Test(control_memory, all_memory_and_its_bounds)
{
	int fd = attach();
	struct request_reg_mr q = { .access = ACCESS_ON_DEMAND | ACCESS_LOCAL_WRITE,
				    .length = UINT64_MAX };
	struct objects o;
	struct reply_reg_mr r;

	make_objects(fd, &o);
	q.pd = o.pd;
	cr_expect_eq(ask(fd, COMMAND_REG_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
	q.iova = 4096;
	cr_expect_eq(ask(fd, COMMAND_REG_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), EINVAL,
		     "it is called as it is");
	q.iova = 0;
	q.access |= ACCESS_HUGETLB;
	cr_expect_eq(ask(fd, COMMAND_REG_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), EINVAL);
	q.access = ACCESS_LOCAL_WRITE;
	cr_expect_eq(ask(fd, COMMAND_REG_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), EINVAL,
		     "only on demand");
	q.access = ACCESS_ON_DEMAND;
	q.length = UINT64_MAX - 1;
	cr_expect_eq(ask(fd, COMMAND_REG_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), EINVAL,
		     "nearly all");
	expect_counts(1, 1, 1, 2);
	close(fd);
	expect_counts(0, 0, 0, 0);
}

Test(control_memory, advice)
{
	int fd = attach(), other = attach();
	struct request_reg_mr reg = {
		.access = ACCESS_ON_DEMAND, .address = place(), .iova = 0x1000, .length = 4096
	};
	struct request_advise_mr q = { .num_sge = 1 };
	struct objects o, foreign;
	struct reply_alloc_mw w;
	struct reply_advise_mr a;
	struct reply_reg_mr r;

	make_objects(fd, &o);
	make_objects(other, &foreign);
	reg.pd = o.pd;
	cr_assert_eq(ask(fd, COMMAND_REG_MR, &reg.h, sizeof(reg), &r.h, sizeof(r), NULL, NULL), 0);
	cr_assert_eq(alloc_mw(fd, o.pd, 1, &w), 0);
	q.pd = o.pd;
	q.sge[0] = (struct work_sge){ 0x1010, 16, r.lkey };
	cr_expect_eq(advise(fd, &q, &a), 0);
	cr_expect_eq(a.address[0], place() + 0x10, "where it is, not as it is called");
	q.sge[0].addr = 0xfff;
	cr_expect_eq(advise(fd, &q, &a), EFAULT);
	q.sge[0] = (struct work_sge){ UINT64_MAX, 16, r.lkey };
	cr_expect_eq(advise(fd, &q, &a), EFAULT);
	q.sge[0] = (struct work_sge){ 0x1000, 16, w.rkey };
	cr_expect_eq(advise(fd, &q, &a), EFAULT, "a window that is not bound is nobody's key");
	q.num_sge = 0;
	cr_expect_eq(advise(fd, &q, &a), EINVAL);
	q.num_sge = ADVISE_MAX + 1;
	cr_expect_eq(advise(fd, &q, &a), EINVAL);
	q.num_sge = UINT32_MAX;
	cr_expect_eq(advise(fd, &q, &a), EINVAL);
	q.num_sge = 1;
	q.advice = 3;
	cr_expect_eq(advise(fd, &q, &a), EOPNOTSUPP);
	q.advice = 0;
	q.pd = 999;
	cr_expect_eq(advise(fd, &q, &a), EINVAL);
	q.pd = foreign.pd;
	q.sge[0] = (struct work_sge){ 0x1000, 16, r.lkey };
	cr_expect_eq(advise(other, &q, &a), EFAULT, "another program's key is no key");
	close(fd);
	close(other);
	expect_counts(0, 0, 0, 0);
}

/*
 * Each message a little too short or too long ends its connection, and leaves nothing.
 * hostile H-154: lists of pieces.
 */
Test(control_memory, messages_of_the_wrong_length)
{
	static const enum command what[] = { COMMAND_REREG_MR, COMMAND_ALLOC_NULL_MR,
					     COMMAND_ADVISE_MR, COMMAND_ALLOC_MW,
					     COMMAND_DEALLOC_MW };

	for (size_t i = 0; i < ARRAY_SIZE(what); i++) {
		for (int by = -4; by <= 4; by += 8) {
			size_t length = request_size(what[i]) + (size_t)by;
			struct command_request *q = calloc(1, length + 8);
			struct command_reply r;
			int fd = attach(), error;

			*q = (struct command_request){ .magic = COMMAND_MAGIC,
						       .version = COMMAND_VERSION,
						       .command = (uint16_t)what[i],
						       .length = (uint32_t)length };
			error = throw_at(fd, q, length, NULL, 0, &r);
			cr_expect(error == EPROTO || error == -1, "command %u, %d octets: %d",
				  what[i], by, error);
			free(q);
			close(fd);
		}
	}
	expect_counts(0, 0, 0, 0);
	expect_serving();
}
