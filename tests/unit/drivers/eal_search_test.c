/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "drivers/eal_search.h"

#define CPU  "/sys/devices/system/cpu/"
#define NODE "/sys/devices/system/node/"

Test(eal_search, files_past_the_last_processor_or_node)
{
	static const struct {
		const char *path;
		bool past; /* with processors 0 to 11, and nodes 0 and 1 */
	} row[] = {
		{ CPU "cpu0/topology/core_id", false },
		{ CPU "cpu11/topology/core_id", false },
		{ CPU "cpu12/topology/core_id", true },
		{ CPU "cpu1023", true },
		{ CPU "cpufreq/policy12", false },
		{ CPU "possible", false },
		{ NODE "node1/cpu11", false },
		{ NODE "node1/cpu12", true },
		{ NODE "node2/cpu0", true },
		{ NODE "node2", true },
		{ NODE "node0/memory12", false },
		{ NODE "possible", false },
		{ "/sys/devices/system/memory/memory12", false },
		{ "cpu12", false },
		{ "", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		cr_expect_eq(eal_search_is_past(row[i].path, 11, 1), row[i].past, "%s",
			     row[i].path);
		cr_expect(!eal_search_is_past(row[i].path, ULONG_MAX, ULONG_MAX), "%s",
			  row[i].path);
	}
}

Test(eal_search, last_number_of_a_list)
{
	static const struct {
		const char *list;
		unsigned long last;
	} row[] = {
		{ "0\n", 0 }, { "0-3\n", 3 },	   { "0-3,8-11\n", 11 }, { "0,2\n", 2 },
		{ "17", 17 }, { "\n", ULONG_MAX }, { "", ULONG_MAX },	 { "0-\n", ULONG_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		cr_expect_eq(eal_search_last(row[i].list), row[i].last, "%s", row[i].list);
}

/* Of a name that two have, the libraries get the program's. */
Test(eal_search, libraries_call_the_functions_of_the_program)
{
	cr_expect_eq(dlsym(RTLD_DEFAULT, "access"), (void *)access);
	cr_expect_eq(dlsym(RTLD_DEFAULT, "readdir64"), (void *)readdir);
	cr_expect_neq(dlsym(RTLD_NEXT, "access"), (void *)access, "libc has another one");
}

/* The kernel says what is right. */
Test(eal_search, access_says_what_the_kernel_says)
{
	static const char *const format[] = {
		CPU "cpu%u/topology/core_id", CPU "cpu%u", NODE "node%u",
		NODE "node0/cpu%u",	      "/proc/%u",  "/dev/null%u"
	};
	static const int mode[] = { F_OK, R_OK, W_OK };

	for (unsigned number = 0; number < 1100; number++)
		for (size_t i = 0; i < ARRAY_SIZE(format); i++) {
			char path[64];
			int m = mode[number % 3], expected, why;

			snprintf(path, sizeof(path), format[i], number);
			errno = 0;
			expected = faccessat(AT_FDCWD, path, m, 0);
			why = errno;
			errno = 0;
			cr_assert_eq(access(path, m), expected, "%s", path);
			cr_assert_eq(errno, why, "%s", path);
		}
}

static unsigned entries(const char *folder)
{
	DIR *d = opendir(folder);
	unsigned count = 0;

	cr_assert_not_null(d);
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
		count += e->d_name[0] != '.';
	closedir(d);
	return count;
}

Test(eal_search, only_wanted_drivers_are_in_a_folder)
{
	static const char *const file[] = { "librte_net_ring.so.23",
					    "librte_net_ring.so",
					    "librte_net_mlx5.so.23",
					    "librte_bus_pci.so",
					    "librte_",
					    "libother.so" };
	static const char *const wanted[] = { "net_ring.so", "bus_" };
	char folder[] = "/tmp/eal_search.XXXXXX";

	cr_assert_not_null(mkdtemp(folder));
	for (size_t i = 0; i < ARRAY_SIZE(file); i++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "%s/%s", folder, file[i]);
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
		cr_assert_geq(fd, 0);
		close(fd);
	}
	eal_search_want(NULL, 0);
	cr_expect_eq(entries(folder), ARRAY_SIZE(file));
	eal_search_want(wanted, ARRAY_SIZE(wanted));
	cr_expect_eq(entries(folder), 4);
	eal_search_want(NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(file); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/%s", folder, file[i]);
		unlink(path);
	}
	rmdir(folder);
}
