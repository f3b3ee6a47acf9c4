/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device is removed from the machine, or its driver gives it up, while the port is open. The
 * kernel waits until the process has released it. EAL reports the removal in its interrupt thread,
 * which may not close the device, so that thread only writes to an eventfd.
 */
#define ALLOW_EXPERIMENTAL_API /* rte_dev_event_callback_register() */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_dev.h>

#include "drivers/ethdev/private.h"

static void ring(const struct ethdev *d)
{
	const uint64_t one = 1;

	/* This can only fail after 2^64 earlier writes. */
	if (write(d->removed, &one, sizeof(one)) < 0)
		return;
}

/* Called by the bus: vfio-pci is asked to release the device. */
static void on_device_event(const char *name, enum rte_dev_event_type event, void *ethdev)
{
	(void)name;
	if (event == RTE_DEV_EVENT_REMOVE)
		ring(ethdev);
}

/* Called by drivers that notice the removal by themselves (mlx5). */
static int on_port_event(uint16_t id, enum rte_eth_event_type event, void *ethdev, void *unused)
{
	(void)id;
	(void)unused;
	if (event == RTE_ETH_EVENT_INTR_RMV)
		ring(ethdev);
	return 0;
}

void removal_watch(struct ethdev *d, const struct rte_eth_dev_info *info)
{
	d->removed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->removed < 0)
		return;
	d->device = info->device != NULL ? rte_dev_name(info->device) : NULL;
	if (d->device != NULL &&
	    rte_dev_event_callback_register(d->device, on_device_event, d) != 0)
		d->device = NULL;
	rte_eth_dev_callback_register(d->id, RTE_ETH_EVENT_INTR_RMV, on_port_event, d);
}

void removal_forget(struct ethdev *d)
{
	if (d->removed < 0)
		return;
	/* Busy means that a callback is running and writes to the eventfd. */
	while (d->device != NULL &&
	       rte_dev_event_callback_unregister(d->device, on_device_event, d) == -EAGAIN)
		usleep(1000);
	while (rte_eth_dev_callback_unregister(d->id, RTE_ETH_EVENT_INTR_RMV, on_port_event, d) ==
	       -EAGAIN)
		usleep(1000);
	close(d->removed);
	d->removed = -1;
}

bool removal_told(const struct ethdev *d)
{
	struct pollfd p = { .fd = d->removed, .events = POLLIN };

	return d->removed >= 0 && poll(&p, 1, 0) > 0;
}
