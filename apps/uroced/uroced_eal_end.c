/* SPDX-License-Identifier: BSD-3-Clause */
#include <semaphore.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_interrupts.h>

#include "uroced_eal.h"

#define PATIENCE 2 /* seconds: the thread may wait long for a CPU */

static sem_t here, never;

static void stay(void *arg)
{
	(void)arg;
	sem_post(&here);
	while (sem_wait(&never) != 0)
		; /* a signal */
}

/* An interrupt of our own. It is not an alarm, because rte_eal_cleanup() waits until none runs. */
static bool interrupt(void)
{
	struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);

	return handle != NULL && fd >= 0 && rte_intr_fd_set(handle, fd) == 0 &&
	       rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) == 0 &&
	       rte_intr_callback_register(handle, stay, NULL) == 0;
}

void end_eal(void)
{
	struct timespec until;

	sem_init(&here, 0, 0);
	sem_init(&never, 0, 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE;
	if (interrupt())
		sem_timedwait(&here, &until);
	rte_eal_cleanup();
}
