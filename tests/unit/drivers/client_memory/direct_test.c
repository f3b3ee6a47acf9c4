/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/direct.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OCTETS (16u * 4096u)

static int new_file(int seals)
{
	int fd = memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, OCTETS), 0);
	if (seals != 0)
		cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

Test(direct, a_sealed_file_is_mapped)
{
	struct direct_map d;
	int fd = new_file(F_SEAL_SHRINK);
	char octets[6] = "";

	cr_assert_eq(direct_open(&d, fd, 4096, 0, true), 0);
	cr_assert_eq(d.length, OCTETS - 4096);
	strcpy(direct_at(&d, 8192 + 5, 6), "hello");
	cr_assert_eq(pread(fd, octets, 6, 8192 + 5), 6);
	cr_assert_str_eq(octets, "hello");
	cr_assert_null(direct_at(&d, 4095, 1));
	cr_assert_null(direct_at(&d, OCTETS - 5, 6));
	cr_assert_null(direct_at(&d, 8192, UINT64_MAX));
	cr_assert_not_null(direct_at(&d, OCTETS - 6, 6));
	direct_close(&d);
	close(fd);
}

/* hostile H-120: a file that shrinks. */
Test(direct, a_file_that_could_shrink_is_refused)
{
	char path[] = "/dev/shm/uroce-direct-XXXXXX";
	struct direct_map d;
	int fd = new_file(0);

	cr_assert_eq(direct_open(&d, fd, 0, 4096, true), EOPNOTSUPP);
	close(fd);
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	unlink(path);
	cr_assert_eq(ftruncate(fd, OCTETS), 0);
	cr_assert_eq(direct_open(&d, fd, 0, 4096, true), EOPNOTSUPP);
	close(fd);
	fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	cr_assert_eq(direct_open(&d, fd, 0, 4096, true), EOPNOTSUPP);
	close(fd);
	cr_assert_eq(direct_open(&d, -1, 0, 4096, true), EOPNOTSUPP);
}

/* hostile H-147: ranges outside of a file. */
Test(direct, ranges_outside_the_file_are_refused)
{
	static const struct {
		uint64_t offset, length;
	} bad[] = { { 0, OCTETS + 1 },
		    { OCTETS, 0 },
		    { OCTETS, 4096 },
		    { 4096, UINT64_MAX - 4095 },
		    { UINT64_MAX - 4095, 4096 },
		    { 1, 100 } };
	struct direct_map d;
	int fd = new_file(F_SEAL_SHRINK);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(direct_open(&d, fd, bad[i].offset, bad[i].length, true), EINVAL,
			     "case %zu", i);
	close(fd);
}
