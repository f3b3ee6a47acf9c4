/* SPDX-License-Identifier: BSD-3-Clause */
/* A port is closed while its driver announces that the device is gone, in a thread of EAL. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include <ethdev_driver.h>

#include "offers.h"

#define LONG_US 100000

TestSuite(removal_busy, .init = offers_begin, .timeout = 60);

ssize_t __real_write(int fd, const void *octets, size_t n);
ssize_t __wrap_write(int fd, const void *octets, size_t n);

static uint32_t watched, inside, goes_on, closed; /* atomic */

/* The announcement is preempted where it says so to the engine. */
ssize_t __wrap_write(int fd, const void *octets, size_t n)
{
	if (__atomic_load_n(&watched, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&goes_on, __ATOMIC_ACQUIRE))
			usleep(1000);
	}
	return __real_write(fd, octets, n);
}

static void *announce(void *device)
{
	rte_eth_dev_callback_process(device, RTE_ETH_EVENT_INTR_RMV, NULL);
	return NULL;
}

static void *close_port(void *port)
{
	struct port *p = port;

	p->ops->close(p);
	__atomic_store_n(&closed, 1, __ATOMIC_RELEASE);
	return NULL;
}

Test(removal_busy, a_port_is_not_freed_under_its_announcement)
{
	char why[256] = "";
	struct port *p = offers_open("net_offers0", 0, 0, why, sizeof(why));
	pthread_t eal, control;
	uint16_t id;

	cr_assert_not_null(p, "%s", why);
	cr_assert_eq(rte_eth_dev_get_port_by_name("net_offers0", &id), 0);
	__atomic_store_n(&watched, 1, __ATOMIC_RELEASE);
	cr_assert_eq(pthread_create(&eal, NULL, announce, &rte_eth_devices[id]), 0);
	while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
		usleep(1000);
	cr_assert_eq(pthread_create(&control, NULL, close_port, p), 0);
	usleep(LONG_US);
	cr_expect_eq(__atomic_load_n(&closed, __ATOMIC_ACQUIRE), 0);
	__atomic_store_n(&goes_on, 1, __ATOMIC_RELEASE);
	pthread_join(eal, NULL);
	pthread_join(control, NULL);
	cr_expect_eq(closed, 1);
}
