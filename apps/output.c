/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

void output_keep_closed(void)
{
	/* open() takes the lowest number. Programs that are executed find the number closed. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_PATH | O_CLOEXEC) < 0)
			return;
}

/* stdio does not keep why an earlier write failed: one more fails alike. */
static int error_of_before(void)
{
	return putchar('\n') == EOF || fflush(stdout) != 0 ? errno : EIO;
}

int output_error(void)
{
	static int error; /* stdio drops what it could not write, and the next flush succeeds */

	if (error != 0)
		return error;
	if (fflush(stdout) != 0)
		error = errno;
	else if (ferror(stdout))
		error = error_of_before();
	return error;
}

int output_status(const char *program)
{
	int error = output_error();

	if (error == 0)
		return EXIT_DONE;
	fprintf(stderr, "%s: standard output: %s\n", program, strerror(error));
	return EXIT_FAILED;
}
