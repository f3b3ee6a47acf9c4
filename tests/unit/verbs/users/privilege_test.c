/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection outlives an execve() if another process has a copy of it. Then the process that
 * connected may run a program with privileges from its file, which the connection must not get.
 * Runs, privileged, with an engine at $UROCE_SOCKET that every program may connect to.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bits.h"

#define NOBODY 65534

static char folder[] = "/tmp/uroce-privilege-XXXXXX";
static char program[64]; /* a copy of sleep(1) with privileges */

static void copy_sleep(void)
{
	char line[160];

	if (geteuid() != 0) {
		fprintf(stderr, "skipped: it takes root to make such programs\n");
		cr_skip_test("not root");
	}
	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(chmod(folder, 0711), 0);
	snprintf(program, sizeof(program), "%s/sleep", folder);
	snprintf(line, sizeof(line), "cp -L \"$(command -v sleep)\" %s", program);
	cr_assert_eq(system(line), 0);
	cr_assert_eq(chmod(program, 0755), 0);
}

static void remove_sleep(void)
{
	unlink(program);
	rmdir(folder);
}

TestSuite(privilege, .init = copy_sleep, .fini = remove_sleep, .timeout = 60);

/* CapEff of a process, 0: it has none, or there is no such process. */
static unsigned long long effective(pid_t pid)
{
	unsigned long long bits = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "CapEff: %llx", &bits) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return bits;
}

enum step {
	REFUSED, /* the right result */
	ALLOWED,
	NOT_READY, /* the test itself failed */
	NO_PRIVILEGE, /* the program got none: a mount with nosuid, say */
};

static enum step make_raw(struct ibv_context *context)
{
	struct ibv_qp_init_attr qp = { .cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RAW_PACKET };
	struct ibv_pd *pd = ibv_alloc_pd(context);

	qp.send_cq = qp.recv_cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	if (pd == NULL || qp.send_cq == NULL)
		return NOT_READY;
	return ibv_create_qp(pd, &qp) != NULL ? ALLOWED : errno == EPERM ? REFUSED : NOT_READY;
}

/* A process that shares the connection of `connected`, which will run another program. */
static enum step ask_beside(struct ibv_context *context, pid_t connected)
{
	for (int i = 0; i < 2000; i++) {
		if (effective(connected) >> CAP_NET_RAW & 1)
			return make_raw(context);
		usleep(10000);
	}
	return NO_PRIVILEGE;
}

/* Runs the program with privileges; a copy of this process, made without fork handlers, goes on. */
static void connect_and_execute(int tell)
{
	struct ibv_device **list;
	struct ibv_context *context;
	pid_t self = getpid();
	uint8_t found = NOT_READY;

	if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
		_exit(1);
	list = ibv_get_device_list(NULL);
	context = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	if (context == NULL)
		_exit(1);
	if (syscall(SYS_fork) == 0) {
		found = (uint8_t)ask_beside(context, self);
		if (write(tell, &found, 1) != 1)
			_exit(1);
		kill(self, SIGKILL);
		_exit(0);
	}
	execl(program, "sleep", "30", (char *)NULL);
	_exit(1);
}

static void expect_refusal(void)
{
	uint8_t found = NOT_READY;
	int tell[2], status;
	pid_t child;

	cr_assert_eq(pipe(tell), 0);
	child = fork();
	if (child == 0)
		connect_and_execute(tell[1]);
	close(tell[1]);
	cr_assert_eq(read(tell[0], &found, 1), 1);
	close(tell[0]);
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, &status, 0), child);
	if (found == NO_PRIVILEGE) {
		fprintf(stderr, "skipped: files give no privileges in %s\n", folder);
		cr_skip_test("no privileges of files");
	}
	cr_expect_eq(found, REFUSED, "%u", found);
}

Test(privilege, of_a_setuid_program)
{
	cr_assert_eq(chmod(program, 04755), 0);
	expect_refusal();
}

Test(privilege, of_a_program_with_file_capabilities)
{
	struct vfs_cap_data data = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0] = { .permitted = 1u << CAP_NET_RAW },
	};

	cr_assert_eq(setxattr(program, "security.capability", &data, sizeof(data), 0), 0, "%s",
		     strerror(errno));
	expect_refusal();
}
