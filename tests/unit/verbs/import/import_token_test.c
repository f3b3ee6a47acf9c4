/* SPDX-License-Identifier: BSD-3-Clause */
/* Import between processes: what a token and a handle permit, and what not. See import_rig.h. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "import_rig.h"

TestSuite(import_token, .init = import_begin, .fini = import_end, .timeout = 120);

/* ---- tokens ---- */

static int import_error(int fd)
{
	struct ibv_context *c;

	errno = 0;
	c = ibv_import_device(fd);
	if (c == NULL)
		return errno;
	ibv_close_device(c); /* and fd with it */
	return 0;
}

/* A copy of the token in our own file, sealed in the same way. */
static int forge(bool sealed)
{
	uint8_t octets[sizeof(struct context_token)];
	int fd = memfd_create("forged", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	cr_assert_eq(pread(token, octets, sizeof(octets), 0), (ssize_t)sizeof(octets));
	cr_assert_eq(write(fd, octets, sizeof(octets)), (ssize_t)sizeof(octets));
	if (sealed)
		cr_assert_eq(fcntl(fd, F_ADD_SEALS,
				   F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			     0);
	return fd;
}

Test(import_token, only_the_token_itself_is_accepted)
{
	int pipes[2], folder = open("/tmp", O_RDONLY | O_DIRECTORY),
		      null = open("/dev/null", O_RDWR);
	int plain = open("/proc/self/exe", O_RDONLY), copy = forge(false), forged = forge(true);

	cr_assert_eq(pipe(pipes), 0);
	cr_expect_eq(import_error(-1), EBADF);
	cr_expect_eq(import_error(9999), EBADF);
	cr_expect_eq(import_error(pipes[0]), EINVAL, "an empty pipe");
	cr_expect_eq(import_error(folder), EINVAL);
	cr_expect_eq(import_error(null), EINVAL);
	cr_expect_eq(import_error(plain), EINVAL);
	cr_expect_eq(import_error(copy), EINVAL, "its octets in another file");
	cr_expect_eq(import_error(forged), EINVAL, "... that is sealed as it is");
	cr_expect_eq(import_error(dup(token)), 0);
	cr_expect_eq(fcntl(token, F_GETFD) >= 0, 1, "what was imported was a duplicate");
}

Test(import_token, nobody_can_change_a_token)
{
	cr_expect_eq(pwrite(token, "x", 1, 0), -1);
	cr_expect_eq(ftruncate(token, 0), -1);
	cr_expect_eq(ftruncate(token, 1 << 20), -1);
	cr_expect_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, token, 0), MAP_FAILED);
}

Test(import_token, a_token_leads_to_its_engine)
{
	char *socket = strdup(getenv("UROCE_SOCKET"));

	setenv("UROCE_SOCKET", "/nonexistent", 1);
	cr_expect_null(ibv_get_device_list(NULL)[0], "no engine is there by itself");
	cr_expect_eq(import_error(dup(token)), 0);
	setenv("UROCE_SOCKET", socket, 1);
	free(socket);
}

Test(import_token, the_token_of_a_closed_context_is_refused)
{
	struct ibv_context *c = ibv_import_device(dup(token));

	cr_assert_not_null(c);
	cr_assert_eq(tell(&exporter, CLOSE, 0, 0), 0);
	cr_expect_eq(import_error(token), EINVAL);
	errno = 0;
	cr_expect_null(ibv_import_pd(c, exported.handle));
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(ibv_close_device(c), 0);
}

Test(import_token, handles_are_not_enough)
{
	struct ibv_context *c = open_only_device();
	struct ibv_pd *pd = ibv_alloc_pd(c), *again;

	for (uint32_t guess = 0; guess < 100; guess++) {
		if (guess == pd->handle)
			continue;
		errno = 0;
		cr_expect_null(ibv_import_pd(c, guess));
		cr_expect_eq(errno, EINVAL);
		errno = 0;
		cr_expect_null(ibv_import_mr(pd, guess));
		cr_expect_eq(errno, EINVAL);
		errno = 0;
		cr_expect_null(ibv_import_dm(c, guess));
		cr_expect_eq(errno, EINVAL);
	}
	again = ibv_import_pd(c, pd->handle);
	cr_assert_not_null(again, "one's own may be imported, too");
	ibv_unimport_pd(again);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_close_device(c), 0);
}

/* In a fork's child: objects that it allocates with the inherited context are its own. */
Test(import_token, a_forks_child_allocates_device_memory)
{
	struct ibv_context *c = open_only_device();
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_device_attr_ex device;
	int status = -1;
	pid_t child;

	child = fork();
	if (child == 0) {
		struct ibv_dm *dm = ibv_alloc_dm(c, &attr);
		uint32_t word = 7, back = 0;

		_exit(ibv_query_device_ex(c, NULL, &device) != 0 || device.max_dm_size == 0 ||
		      dm == NULL || ibv_memcpy_to_dm(dm, 0, &word, 4) != 0 ||
		      ibv_memcpy_from_dm(&back, dm, 0, 4) != 0 || back != 7 ||
		      ibv_alloc_pd(c) != NULL || ibv_free_dm(dm) != 0);
	}
	waitpid(child, &status, 0);
	cr_expect_eq(status, 0);
	cr_expect_eq(ibv_close_device(c), 0);
}
