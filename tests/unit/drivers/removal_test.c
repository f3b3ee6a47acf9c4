/* SPDX-License-Identifier: BSD-3-Clause */
/* A port whose device is removed: the test makes EAL's announcement itself. */
#define ALLOW_EXPERIMENTAL_API /* rte_dev_event_callback_process() */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/ethdev/ethdev.h"

#define DEVICE "net_null0"

static struct port *p;

static void begin(void)
{
	static char prefix[64];
	char *arguments[] = { (char *)"removal_test", (char *)"--no-huge", (char *)"--no-shconf",
			      (char *)"--no-pci",     (char *)"-m",	   (char *)"64",
			      (char *)"-l",	      (char *)"0",	   prefix };
	struct ethdev_options o = {
		.name = DEVICE, .queues = 1, .mtu = 1500, .socket = SOCKET_ID_ANY
	};
	char why[256] = "";

	snprintf(prefix, sizeof(prefix), "--file-prefix=removal_test_%d", (int)getpid());
	cr_assert_geq(rte_eal_init(ARRAY_SIZE(arguments), arguments), 0, "EAL");
	cr_assert_eq(rte_vdev_init(DEVICE, ""), 0);
	o.pool = rte_pktmbuf_pool_create("frames", 1023, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM,
					 SOCKET_ID_ANY);
	p = ethdev_open(&o, why, sizeof(why));
	cr_assert_not_null(p, "%s", why);
}

static void end(void)
{
	p->ops->close(p);
}

TestSuite(removal, .init = begin, .fini = end, .timeout = 60);

static bool is_told(void)
{
	struct pollfd fd = { .fd = ethdev_removed_fd(p), .events = POLLIN };

	cr_assert_geq(fd.fd, 0);
	return poll(&fd, 1, 0) == 1;
}

Test(removal, a_port_whose_device_is_taken_away_says_so_and_has_no_link)
{
	cr_expect(p->link_up);
	cr_expect_not(is_told());
	rte_dev_event_callback_process(DEVICE, RTE_DEV_EVENT_REMOVE);
	cr_expect(is_told());
	cr_expect(is_told(), "whoever looks later sees it, too");
	cr_expect(p->ops->refresh(p));
	cr_expect_not(p->link_up);
}

Test(removal, other_events_and_other_devices_do_not_matter)
{
	rte_dev_event_callback_process(DEVICE, RTE_DEV_EVENT_ADD);
	rte_dev_event_callback_process("net_null1", RTE_DEV_EVENT_REMOVE);
	cr_expect_not(is_told());
	p->ops->refresh(p);
	cr_expect(p->link_up);
}

Test(removal, ports_of_other_drivers_have_nothing_to_watch)
{
	struct port_ops ops = { .refresh = NULL };
	struct port other = { .ops = &ops };

	cr_expect_eq(ethdev_removed_fd(&other), -1);
}
