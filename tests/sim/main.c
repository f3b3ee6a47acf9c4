/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "output.h"
#include "sim.h"

/*
 * Thousands of worlds, of megabytes each, follow each other. So what is freed stays with the program, in huge pages where
 * there are some: otherwise the kernel clears it again page by page for each world, which takes up to three quarters of the
 * time. malloc() reads this when a program starts, so this one starts once more.
 */
static void keep_heap(char **argv)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length <= 0 || getenv("GLIBC_TUNABLES") != NULL ||
	    setenv("GLIBC_TUNABLES", KEEPS_HEAP, 1) != 0)
		return;
	path[length] = '\0';
	execv(path, argv); /* if that fails, it is as fast as without */
}

int main(int argc, char **argv)
{
	int status;

	keep_heap(argv);
	output_keep_closed();
	status = sim_main(argc, argv);
	return status != 0 ? status : output_status("uroce sim");
}
