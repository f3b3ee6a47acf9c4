/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "preload/rewrite.h"

Test(rewrite, paths_of_the_device_and_no_others)
{
	static const struct {
		const char *path, *becomes; /* NULL: stays */
	} rows[] = {
		{ "/sys/class/infiniband", "/r/class/infiniband" },
		{ "/sys/class/infiniband/", "/r/class/infiniband/" },
		{ "/sys/class/infiniband/uroce0/ports/1/state",
		  "/r/class/infiniband/uroce0/ports/1/state" },
		{ "/sys/class/infiniband_verbs/uroce0/ibdev",
		  "/r/class/infiniband_verbs/uroce0/ibdev" },
		{ "/dev/infiniband/uroce0", "/r/dev/infiniband/uroce0" },
		{ "//sys/./class///infiniband/uroce0", "/r/class/infiniband/uroce0" },
		{ "/./dev//infiniband", "/r/dev/infiniband" },
		{ "/sys/class/infiniband/uroce0/../uroce0/fw_ver",
		  "/r/class/infiniband/uroce0/../uroce0/fw_ver" },
		/* others' */
		{ "/sys/class/infiniband_mad", NULL },
		{ "/sys/class/infiniband_", NULL },
		{ "/sys/class/infinibanduroce0", NULL },
		{ "/sys/class/infiniban", NULL },
		{ "/sys/class/net/lo", NULL },
		{ "/sys/class", NULL },
		{ "/sys", NULL },
		{ "/", NULL },
		{ "", NULL },
		{ "/dev/infinibandx", NULL },
		{ "/devinfiniband", NULL },
		{ "/tmp/sys/class/infiniband", NULL },
		{ "sys/class/infiniband", NULL },
		{ "./dev/infiniband", NULL },
		/* out again */
		{ "/sys/class/infiniband/..", NULL },
		{ "/sys/class/infiniband/../net", NULL },
		{ "/sys/class/infiniband/uroce0/../../net", NULL },
		{ "/dev/infiniband/./../null", NULL },
		/* three dots are a name */
		{ "/dev/infiniband/...", "/r/dev/infiniband/..." },
	};
	char room[REWRITE_ROOM];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *path = rows[i].path;

		cr_expect_eq(rewrite("/r", &path, room), 0);
		if (rows[i].becomes == NULL)
			cr_expect_eq(path, rows[i].path, "%s became %s", rows[i].path, path);
		else
			cr_expect_str_eq(path, rows[i].becomes, "%s became %s", rows[i].path, path);
	}
}

Test(rewrite, without_a_folder_everything_stays)
{
	const char *path = "/sys/class/infiniband", *none = NULL;
	char room[REWRITE_ROOM];

	cr_expect_eq(rewrite(NULL, &path, room), 0);
	cr_expect_str_eq(path, "/sys/class/infiniband");
	cr_expect_eq(rewrite("/r", &none, room), 0);
	cr_expect_null(none);
}

Test(rewrite, a_path_that_is_too_long_is_refused)
{
	static const char start[] = "/dev/infiniband/";
	char room[REWRITE_ROOM], name[2 * REWRITE_ROOM];
	size_t most = REWRITE_ROOM - 1 - strlen("/r/dev/infiniband/");
	const char *path = name;

	snprintf(name, sizeof(name), "%s%0*d", start, (int)most, 0);
	cr_expect_eq(rewrite("/r", &path, room), 0);
	cr_expect_eq(strlen(path), REWRITE_ROOM - 1);
	path = name;
	snprintf(name, sizeof(name), "%s%0*d", start, (int)most + 1, 0);
	cr_expect_eq(rewrite("/r", &path, room), ENAMETOOLONG);
}
