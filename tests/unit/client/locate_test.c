/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/locate.h"

/* Above every number that adduser and systemd assign; a process adds its own. */
#define A_USER_OF_NOBODY 3000000000u

Test(locate, a_named_engine_is_the_only_one)
{
	struct locations l;

	setenv("UROCE_SOCKET", "/somewhere/a.sock", 1);
	locate_engines(&l);
	cr_assert_eq(l.count, 1);
	cr_assert_str_eq(l.path[0], "/somewhere/a.sock");
}

Test(locate, the_systems_engine_comes_before_the_users)
{
	struct locations l;

	unsetenv("UROCE_SOCKET");
	setenv("XDG_RUNTIME_DIR", "/run/user/77", 1);
	locate_engines(&l);
	cr_assert_eq(l.count, 2);
	cr_assert_str_eq(l.path[0], "/run/uroce/uroced.sock");
	cr_assert_str_eq(l.path[1], "/run/user/77/uroce/uroced.sock");
}

Test(locate, a_path_that_no_socket_can_have_is_left_out)
{
	struct locations l;
	char longer[200], said[512] = "";
	int ends[2];

	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	setenv("UROCE_SOCKET", longer, 1);
	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	locate_engines(&l);
	cr_assert_eq(l.count, 0);
	cr_assert_gt(read(ends[0], said, sizeof(said) - 1), 0);
	cr_expect_not_null(strstr(said, "limit 107 octets"), "%s", said);
}

/*
 * Anybody can make /tmp/uroce-UID first, so it must be ours and closed to others. Root looks as a user of
 * this process alone: another test's engine may be at work in root's own folder.
 */
Test(locate, a_folder_in_tmp_that_others_may_write_is_not_trusted)
{
	char folder[64];
	struct locations l;

	unsetenv("UROCE_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
	if (geteuid() == 0)
		cr_assert_eq(seteuid(A_USER_OF_NOBODY + (uid_t)getpid()), 0);
	snprintf(folder, sizeof(folder), "/tmp/uroce-%u", (unsigned)geteuid());
	if (mkdir(folder, 0700) != 0)
		cr_skip_test("%s is in use", folder);
	locate_engines(&l);
	cr_expect_eq(l.count, 2);
	chmod(folder, 0770);
	locate_engines(&l);
	cr_expect_eq(l.count, 1);
	rmdir(folder);
	locate_engines(&l);
	cr_expect_eq(l.count, 1);
}
