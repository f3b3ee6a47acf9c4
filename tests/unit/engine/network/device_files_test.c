/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's files outlast a file system that is full for a while. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/control.h"
#include "rig/control_rig.h"

static uint32_t full; /* atomic: the errno with which no file can be made; 0: files can */

int __real_openat64(int folder, const char *name, int flags, mode_t mode);
int __wrap_openat64(int folder, const char *name, int flags, ...);

int __wrap_openat64(int folder, const char *name, int flags, ...)
{
	uint32_t error = __atomic_load_n(&full, __ATOMIC_RELAXED);
	mode_t mode = 0;
	va_list more;

	va_start(more, flags);
	if ((flags & O_CREAT) != 0)
		mode = va_arg(more, mode_t);
	va_end(more);
	if (error == 0 || (flags & O_CREAT) == 0)
		return __real_openat64(folder, name, flags, mode);
	errno = (int)error;
	return -1;
}

TestSuite(device_files, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

/* The line of a file of the device; "": there is none. */
static const char *line_of(const char *file)
{
	static char text[64];
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s.files/%s", path, file);
	f = fopen(name, "re");
	text[0] = '\0';
	if (f != NULL && fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	if (f != NULL)
		fclose(f);
	return text;
}

/* An address changes when there is no room for the file that tells of it. */
static void change_while_full(int error, uint8_t last)
{
	struct engine *e = (struct engine *)engine;

	pthread_mutex_lock(&e->control_lock);
	e->gid[LIMIT_GIDS - 1].gid = (struct gid){ { 0xfd, [15] = last } };
	__atomic_store_n(&full, (uint32_t)error, __ATOMIC_RELAXED);
	device_files_update(e);
	pthread_mutex_unlock(&e->control_lock);
	cr_expect_str_neq(line_of("engine"), "", "%s: the device is gone", strerror(error));
	__atomic_store_n(&full, 0, __ATOMIC_RELAXED);
}

Test(device_files, are_late_while_there_is_no_room)
{
	static const int errors[] = { EMFILE, ENOSPC, EDQUOT, ENOMEM };

	cr_assert_str_neq(line_of("engine"), "");
	for (uint8_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		nanotime end = clock_now() + ENOUGH_MS * TIME_MS;
		char file[64], wanted[64];

		snprintf(file, sizeof(file), "class/infiniband/uroce0/ports/1/gids/%u",
			 LIMIT_GIDS - 1);
		snprintf(wanted, sizeof(wanted), "fd00:0000:0000:0000:0000:0000:0000:%04x\n",
			 i + 1);
		change_while_full(errors[i], (uint8_t)(i + 1));
		while (strcmp(line_of(file), wanted) != 0 && clock_now() < end)
			poll(NULL, 0, 1);
		cr_assert_str_eq(line_of(file), wanted, "%s: nobody wrote it later",
				 strerror(errors[i]));
	}
}
