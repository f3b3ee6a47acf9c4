/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/ring_client.h"

#include <errno.h>
#include <unistd.h>

#include "queue/cancel.h"

void doorbell_wake(int wake_fd)
{
	const uint64_t one = 1;
	int saved = errno, cancel = cancel_off(); /* the lock of the queue is held */

	/* EAGAIN: the counter is full, so the lcore is awake or about to be */
	while (write(wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	cancel_restore(cancel);
	errno = saved;
}
