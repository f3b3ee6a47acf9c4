/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A daemon that starts as root, changes its user and then opens the device: it may not open its own
 * /proc/self/mem. Runs as root with an engine at $UROCE_SOCKET that every program may connect to,
 * and starts one that is not root ($UROCED).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/endpoint.h"

#define NOBODY 65534

static void expect_root(void)
{
	if (geteuid() == 0)
		return;
	fprintf(stderr, "skipped: only root can drop it\n");
	cr_skip_test("not root");
}

TestSuite(dropped_root, .init = expect_root, .timeout = 60);

static void become_nobody(void)
{
	cr_assert_eq(setgid(NOBODY), 0, "%m");
	cr_assert_eq(setuid(NOBODY), 0, "%m");
}

Test(dropped_root, moves_data)
{
	struct ibv_send_wr wr = { .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct endpoint e;
	struct ibv_sge sge;
	struct ibv_wc wc;

	become_nobody();
	cr_assert_lt(open("/proc/self/mem", O_RDWR), 0, "this kernel leaves it open");
	endpoint_open(&e);
	sge = (struct ibv_sge){ (uintptr_t)e.buffer, 4096, e.mr->lkey };
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + 8192;
	wr.wr.rdma.rkey = e.mr->rkey;
	memset(e.buffer, 0x5a, 4096);
	memset(e.buffer + 8192, 0, 4096);
	cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
	poll_completions(e.cq, &wc, 1, "a WRITE");
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(memcmp(e.buffer, e.buffer + 8192, 4096), 0);
	endpoint_close(&e);
}

/* ---- an engine that is not root ---- */

static char folder[] = "/tmp/uroce-dropped-XXXXXX", place[64];

static pid_t start_engine(void)
{
	struct stat st;
	pid_t pid;

	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(chown(folder, NOBODY, NOBODY), 0);
	snprintf(place, sizeof(place), "%s/s", folder);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("XDG_RUNTIME_DIR", folder, 1);
		if (freopen("/dev/null", "w", stdout) == NULL || setgid(NOBODY) != 0 ||
		    setuid(NOBODY) != 0)
			_exit(127);
		execl(getenv("UROCED"), "uroced", "--no-huge", "-m", "32", "--", "--socket", place,
		      "--ip", "127.0.0.1/8", NULL);
		_exit(127);
	}
	for (int tries = 0; stat(place, &st) != 0; tries++) {
		cr_assert_lt(tries, 3000, "the engine does not serve %s", place);
		cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0, "the engine ends at once");
		poll(NULL, 0, 10);
	}
	return pid;
}

static void end_engine(pid_t pid)
{
	char command[96];

	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

/* Returns what a program prints that opens the device; *opened: whether it could. */
static void open_and_hear(bool dumpable, char *said, size_t size, bool *opened)
{
	int out[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	cr_assert_eq(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		struct ibv_device **list;

		dup2(out[1], STDERR_FILENO);
		if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
			_exit(3);
		if (dumpable)
			prctl(PR_SET_DUMPABLE, 1);
		setenv("UROCE_SOCKET", place, 1);
		list = ibv_get_device_list(NULL);
		if (list == NULL || list[0] == NULL)
			_exit(4);
		_exit(ibv_open_device(list[0]) == NULL);
	}
	close(out[1]);
	while (n + 1 < size && (got = read(out[0], said + n, size - 1 - n)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(out[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "status %#x: %s", status, said);
	*opened = WEXITSTATUS(status) == 0;
}

Test(dropped_root, is_told_what_to_do_if_the_engine_has_no_access)
{
	pid_t engine = start_engine();
	char said[1024];
	bool opened;

	open_and_hear(false, said, sizeof(said), &opened);
	cr_expect_not(opened);
	cr_expect_not_null(strstr(said, "PR_SET_DUMPABLE"), "%s", said);
	cr_expect_not_null(strstr(said, "run the engine as root"), "%s", said);
	cr_expect_eq(strchr(said, '\n'), said + strlen(said) - 1, "one line: %s", said);
	/* and that advice works */
	open_and_hear(true, said, sizeof(said), &opened);
	cr_expect(opened, "%s", said);
	end_engine(engine);
}
