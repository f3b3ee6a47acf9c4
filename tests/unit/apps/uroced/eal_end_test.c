/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of EAL: devices may still report events then. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_interrupts.h>

#include "apps/uroced/uroced_eal.h"

#define ROUNDS 200

static void on_event(void *arg)
{
	uint64_t n;

	if (read(*(int *)arg, &n, sizeof(n)) < 0)
		return;
}

/*
 * A device whose handle is in EAL's memory, as drivers' handles are, and that reports an event
 * after the end.
 */
static void speak_after_the_end(void)
{
	char prefix[32];
	char *argv[] = { "test",
			 "--no-huge",
			 "--no-pci",
			 "-m",
			 "64",
			 "--no-shconf",
			 "--file-prefix",
			 prefix,
			 "--no-telemetry",
			 "--log-level=*:error" };
	static int fd;
	struct rte_intr_handle *handle;
	uint64_t one = 1;

	snprintf(prefix, sizeof(prefix), "eal-end-%d", (int)getpid());
	if (rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])), argv) < 0)
		_exit(2);
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_SHARED);
	if (fd < 0 || handle == NULL || rte_intr_fd_set(handle, fd) != 0 ||
	    rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) != 0 ||
	    rte_intr_callback_register(handle, on_event, &fd) != 0)
		_exit(3);
	end_eal();
	/* a listener would crash at the first event; nobody may answer */
	for (int i = 0; i < ROUNDS; i++) {
		struct pollfd nothing = { .fd = -1 };

		if (write(fd, &one, sizeof(one)) < 0)
			_exit(4);
		poll(&nothing, 1, 1);
	}
	_exit(0);
}

Test(eal_end, a_device_may_speak_afterwards, .timeout = 60)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0)
		speak_after_the_end();
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", (unsigned)status);
}
