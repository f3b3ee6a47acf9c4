/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of a program's own memory file are charged to the engine if packets touch them first, and the
 * program may keep the file when its regions are gone. So its user stays charged (hostile H-122).
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig/control_rig.h"
#include "control/control.h"
#include "lcore/inside.h"

#define FILE_OCTETS (UINT64_C(1) << 20)
#define MOST	    (16 * FILE_OCTETS) /* of all users */
#define FILES	    20u

TestSuite(control_left, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

static struct users *users(void)
{
	return &((struct engine *)engine)->control->users;
}

static uint64_t charged(void)
{
	return __atomic_load_n(&users()->all[RESOURCE_FILES], __ATOMIC_RELAXED);
}

/* Pages are unmapped by another thread, and then Linux tells. */
static void expect_charged(uint64_t octets, const char *when)
{
	for (int ms = 0; charged() != octets && ms < ENOUGH_MS; ms++)
		poll(NULL, 0, 1);
	cr_expect_eq(charged(), octets, "%s: %lu octets", when, (unsigned long)charged());
}

/* It stays so for a while. */
static void expect_still_charged(uint64_t octets, const char *when)
{
	for (int i = 0; i < 50 && charged() == octets; i++)
		poll(NULL, 0, 1);
	cr_expect_eq(charged(), octets, "%s: %lu octets", when, (unsigned long)charged());
}

static int sealed_file(uint64_t octets)
{
	int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(file, (off_t)octets), 0);
	cr_assert_eq(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return file;
}

/* Registers so much of the file. Returns its handle, and whether the engine maps it. */
static uint32_t reg(int fd, uint32_t pd, int file, uint64_t octets, bool *mapped)
{
	union {
		struct request_reg_mr r;
		uint8_t octets[sizeof(struct request_reg_mr) + sizeof(struct mr_backing)];
	} q = { .r = { .pd = pd,
		       .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE,
		       .address = UINT64_C(1) << 40,
		       .iova = UINT64_C(1) << 40,
		       .length = octets,
		       .backings = 1 } };
	struct carrier_descriptors in = { .count = 1, .fd = { file } };
	const struct region *region;
	struct reply_reg_mr r;

	q.r.backing[0] = (struct mr_backing){ .length = octets, .fd = 0, .writable = 1 };
	cr_assert_eq(ask(fd, COMMAND_REG_MR, &q.r.h, sizeof(q), &r.h, sizeof(r), &in, NULL), 0);
	region = key_find(&((struct engine *)engine)->keys, r.lkey);
	*mapped = region->piece[0].direct != NULL;
	return r.handle;
}

static uint32_t begin(int *fd)
{
	struct objects o;

	*fd = attach();
	make_objects(*fd, &o);
	return o.pd;
}

/* hostile H-122: memory that packets fill, and that outlasts its region and its program. */
Test(control_left, a_file_is_charged_until_it_is_gone)
{
	int fd, other, file = sealed_file(FILE_OCTETS);
	uint32_t pd = begin(&fd), mr;
	bool mapped;

	mr = reg(fd, pd, file, FILE_OCTETS, &mapped);
	cr_assert(mapped);
	expect_charged(FILE_OCTETS, "registered");
	cr_assert_eq(ask_handle(fd, COMMAND_DEREG_MR, mr, NULL), 0);
	expect_still_charged(FILE_OCTETS, "deregistered");
	mr = reg(fd, pd, file, FILE_OCTETS / 2, &mapped);
	cr_expect(mapped);
	expect_charged(FILE_OCTETS / 2, "it has holes only: what is registered counts");
	close(fd);
	expect_counts(0, 0, 0, 0);
	expect_still_charged(FILE_OCTETS / 2, "its program has ended");
	pd = begin(&other);
	reg(other, pd, file, FILE_OCTETS, &mapped);
	expect_charged(FILE_OCTETS, "another program of the user registers it");
	close(other);
	expect_counts(0, 0, 0, 0);
	close(file);
	expect_charged(0, "it is gone");
	cr_expect_eq(users()->all[RESOURCE_WATCHES], 0);
}

/* hostile H-122: one program after the other keeps files that packets could fill: at its share the user's are not mapped. */
Test(control_left, files_that_are_kept_are_a_users_share)
{
	int file[FILES], fd;
	uint32_t kept = 0, pd;
	bool mapped = true;

	users()->limit[RESOURCE_FILES] = MOST;
	while (mapped && kept < FILES) {
		file[kept] = sealed_file(FILE_OCTETS);
		pd = begin(&fd);
		reg(fd, pd, file[kept++], FILE_OCTETS, &mapped);
		close(fd);
		expect_counts(0, 0, 0, 0);
	}
	cr_expect_eq(kept, MOST / FILE_OCTETS * 3 / 4 + 1, "%u files", kept);
	for (uint32_t i = 0; i < kept; i++)
		close(file[i]);
	expect_charged(0, "they are gone");
	pd = begin(&fd);
	file[0] = sealed_file(FILE_OCTETS);
	reg(fd, pd, file[0], FILE_OCTETS, &mapped);
	cr_expect(mapped);
	close(file[0]);
	close(fd);
	expect_counts(0, 0, 0, 0);
}
