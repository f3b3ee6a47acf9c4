/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 8 GiB of addresses of a program's queues. Its address space may be limited (RLIMIT_AS, `ulimit -v`, as
 * batch systems set it), so that there is no room for them; and core files would hold all of them. Runs with
 * an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(address_limit, .timeout = 60);

static rlim_t addresses_now(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%lu", &pages) != 1)
		_exit(101);
	fclose(f);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Opens the device with this many more addresses than the program has; returns errno, or 0 on success. */
static int open_with(rlim_t more)
{
	struct rlimit limit = { .rlim_cur = addresses_now() + more, .rlim_max = RLIM_INFINITY };
	struct ibv_device **list;

	if (setrlimit(RLIMIT_AS, &limit) != 0)
		return 102;
	list = ibv_get_device_list(NULL);
	if (list == NULL || list[0] == NULL)
		return 103;
	errno = 0;
	return ibv_open_device(list[0]) == NULL ? errno : 0;
}

/* Returns what a program printed that opened the device, and *error. */
static void open_and_hear(rlim_t more, char *said, size_t size, int *error)
{
	int out[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	cr_assert_eq(pipe(out), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		dup2(out[1], STDERR_FILENO);
		unsetenv("UROCE_LOG");
		_exit(open_with(more));
	}
	close(out[1]);
	while (n + 1 < size && (got = read(out[0], said + n, size - 1 - n)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(out[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "status %#x: %s", status, said);
	*error = WEXITSTATUS(status);
}

Test(address_limit, is_named_where_it_is_too_low)
{
	char said[1024];
	int error;

	open_and_hear((rlim_t)1 << 30, said, sizeof(said), &error);
	cr_expect_eq(error, ENOMEM, "%s", strerror(error));
	cr_expect_neq(strstr(said, "ulimit -v"), NULL, "it says: %s", said);
	cr_expect_neq(strstr(said, "8192 MiB"), NULL, "it says: %s", said);
}

Test(address_limit, is_not_spoken_of_where_it_suffices)
{
	char said[1024];
	int error;

	open_and_hear((rlim_t)9 << 30, said, sizeof(said), &error);
	cr_expect_eq(error, 0, "%s", strerror(error));
	cr_expect_str_eq(said, "");
}

/* ---- core files ---- */

/* Of the queues' mapping, as the kernel describes it: whether core files hold it ("dd": do not dump). */
static bool core_files_hold_the_queues(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	bool found = false, held = false;
	unsigned long kib = 0;
	char line[512];

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		sscanf(line, "Size: %lu kB", &kib);
		if (strncmp(line, "VmFlags:", 8) != 0 || kib < 8u << 20)
			continue;
		found = true;
		held |= strstr(line, " dd") == NULL;
	}
	fclose(f);
	cr_assert(found, "no mapping of 8 GiB");
	return held;
}

Test(address_limit, core_files_do_not_hold_the_queues)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	cr_assert(list != NULL && list[0] != NULL);
	context = ibv_open_device(list[0]);
	cr_assert_not_null(context);
	cr_expect_not(core_files_hold_the_queues());
	cr_expect_eq(ibv_close_device(context), 0);
	ibv_free_device_list(list);
}
