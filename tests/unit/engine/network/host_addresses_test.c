/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine without a port has the addresses of its host, as long as the host has them. */
#include <poll.h>

#include "../drivers/net_namespace.h"
#include "control/control.h"
#include "rig/control_rig.h"

static void begin(void)
{
	net_namespace_enter();
	ip("link add near type veth peer name far");
	ip("link set near up");
	ip("address add 10.0.0.1/24 dev near");
	control_rig_open();
}

static bool has_address(const struct gid *wanted)
{
	struct engine *inside = (struct engine *)engine;
	bool found = false;

	pthread_mutex_lock(&inside->control_lock);
	for (uint32_t i = 0; i < LIMIT_GIDS; i++)
		found |= gid_equal(&inside->gid[i].gid, wanted);
	pthread_mutex_unlock(&inside->control_lock);
	return found;
}

/* The control thread looks at the kernel's announcements now and then. */
static void expect_address(const struct gid *g, bool wanted)
{
	nanotime end = clock_now() + ENOUGH_MS * TIME_MS;

	while (has_address(g) != wanted && clock_now() < end)
		poll(NULL, 0, 1);
	cr_assert_eq(has_address(g), wanted);
}

TestSuite(host_addresses, .init = begin, .fini = control_rig_close, .timeout = 120);

Test(host_addresses, are_followed)
{
	struct gid first = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } };
	struct gid second = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 } };

	cr_assert(has_address(&first));
	for (int i = 0; i < 2; i++) {
		ip("address add 10.0.0.2/24 dev near");
		expect_address(&second, true);
		ip("address delete 10.0.0.2/24 dev near");
		expect_address(&second, false);
	}
	cr_expect(has_address(&first));
}
