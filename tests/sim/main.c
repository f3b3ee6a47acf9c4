/* SPDX-License-Identifier: BSD-3-Clause */
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
	static const char how[] = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824:"
				  "glibc.malloc.trim_threshold=1073741824";

	if (getenv("GLIBC_TUNABLES") == NULL && setenv("GLIBC_TUNABLES", how, 1) == 0)
		execv("/proc/self/exe", argv); /* without /proc it is as fast as before */
}

int main(int argc, char **argv)
{
	int status;

	keep_heap(argv);
	output_keep_closed();
	status = sim_main(argc, argv);
	return status != 0 ? status : output_status("uroce sim");
}
