/* SPDX-License-Identifier: BSD-3-Clause */
/* Which multicast frames a card lets through, depending on what its driver supports. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"
#include "offers.h"

TestSuite(multicast, .init = offers_begin, .timeout = 60);

static const struct mac one = { { 0x01, 0, 0x5e, 7, 8, 9 } }, two = { { 0x33, 0x33, 0, 0, 0, 2 } },
			three = { { 0x33, 0x33, 0, 0, 0, 3 } };
static struct port *port;
static uint16_t id;

static void open_port(const char *name, bool card)
{
	char why[256] = "";

	offers.card = card;
	port = offers_open(name, 0, 0, why, sizeof(why));
	cr_assert_not_null(port, "%s", why);
	cr_assert_eq(rte_eth_dev_get_port_by_name(name, &id), 0);
}

static bool has(const struct mac *group)
{
	for (uint32_t i = 0; i < offers.groups; i++)
		if (memcmp(&offers.group[i], group, sizeof(*group)) == 0)
			return true;
	return false;
}

static void hear(const struct mac *group, uint32_t n)
{
	port->ops->hear(port, &(struct port_hears){ .group = group, .groups = n });
}

/* all: it receives all multicast; everything: it is promiscuous. */
static void expect_lets(bool all, bool everything)
{
	cr_expect_eq(rte_eth_allmulticast_get(id), all);
	cr_expect_eq(rte_eth_promiscuous_get(id), everything);
	cr_expect_eq(port->hears_all != NULL, all || everything, "%s",
		     port->hears_all != NULL ? port->hears_all : "");
}

Test(multicast, before_anybody_says_what_is_wanted_all_comes)
{
	open_port("net_offers0", true);
	expect_lets(true, false);
	port->ops->close(port);
}

Test(multicast, a_card_is_told_what_is_wanted)
{
	struct mac groups[] = { one, two };

	open_port("net_offers0", true);
	hear(groups, 2);
	cr_expect_eq(offers.groups, 2);
	cr_expect(has(&one) && has(&two));
	cr_expect_eq(port->groups, 2);
	expect_lets(false, false);
	hear(&two, 1);
	cr_expect_eq(offers.groups, 1);
	cr_expect(has(&two));
	expect_lets(false, false);
	port->ops->close(port);
}

/* A tap with remote= answers that the list is set, but lets none of it through. */
Test(multicast, a_software_port_is_told_nothing)
{
	open_port("net_offers0", false);
	hear(&one, 1);
	cr_expect_eq(offers.groups, 0);
	expect_lets(true, false);
	port->ops->close(port);
}

Test(multicast, virtio_has_them_in_its_table)
{
	struct mac first[] = { one, two }, then[] = { two, three };

	offers.macs = 3;
	offers.list_answer = -ENOTSUP;
	open_port("net_virtio_offers0", true);
	hear(first, 2);
	cr_expect(has(&one) && has(&two));
	expect_lets(false, false);
	hear(then, 2);
	cr_expect_eq(offers.groups, 2);
	cr_expect(has(&two) && has(&three));
	hear(NULL, 0);
	cr_expect_eq(offers.groups, 0);
	expect_lets(false, false);
	port->ops->close(port);
}

Test(multicast, what_does_not_fit_the_table_comes_nevertheless)
{
	struct mac groups[] = { one, two, three };

	offers.macs = 2;
	open_port("net_virtio_offers0", true);
	hear(groups, 3);
	expect_lets(true, false);
	hear(groups, 2);
	cr_expect_eq(offers.groups, 2);
	expect_lets(false, false);
	hear(groups + 1, 2);
	cr_expect(has(&two) && has(&three), "a place that becomes free is taken");
	expect_lets(false, false);
	port->ops->close(port);
}

Test(multicast, a_driver_that_takes_no_list_lets_all_through)
{
	offers.list_answer = -ENOTSUP;
	open_port("net_offers0", true);
	hear(&one, 1);
	expect_lets(true, false);
	cr_expect_str_eq(port->hears_all, "its driver takes no list of groups");
	port->ops->close(port);
}

Test(multicast, one_that_refuses_that_too_becomes_promiscuous)
{
	offers.list_answer = -ENOSPC;
	offers.all_answer = -EIO;
	open_port("net_offers0", true);
	hear(&one, 1);
	expect_lets(false, true);
	cr_expect_str_eq(port->hears_all, "its filter does not take all groups");
	offers.list_answer = 0;
	hear(&one, 1);
	expect_lets(false, false);
	cr_expect(has(&one));
	port->ops->close(port);
}

Test(multicast, a_reason_to_hear_all_comes_and_goes)
{
	open_port("net_offers0", true);
	hear(&one, 1);
	port->ops->hear(port, &(struct port_hears){ .group = &one,
						    .groups = 1,
						    .all_groups = "a test wants it" });
	expect_lets(true, false);
	cr_expect_str_eq(port->hears_all, "a test wants it");
	hear(&one, 1);
	expect_lets(false, false);
	port->ops->close(port);
}

/* Two may want it: a program's steering rule, and the kernel's interface. */
Test(multicast, promiscuous_while_somebody_wants_it)
{
	struct port_hears h = { .group = &one, .groups = 1, .everything = "a test wants it" };

	open_port("net_offers0", true);
	port->ops->hear(port, &h);
	cr_expect_eq(rte_eth_promiscuous_get(id), 1);
	cr_expect_str_eq(port->hears_others, "a test wants it");
	filter_promiscuous((struct ethdev *)port, true);
	hear(&one, 1);
	cr_expect_null(port->hears_others);
	cr_expect_eq(rte_eth_promiscuous_get(id), 1, "the kernel's interface wants it");
	filter_promiscuous((struct ethdev *)port, false);
	expect_lets(false, false);
	port->ops->close(port);
}

Test(multicast, too_many_groups_are_all_groups)
{
	struct mac groups[LIMIT_PORT_GROUPS + 1];

	for (uint32_t i = 0; i < ARRAY_SIZE(groups); i++)
		groups[i] = (struct mac){ { 0x33, 0x33, 0, 0, 1, (uint8_t)i } };
	open_port("net_offers0", true);
	hear(groups, LIMIT_PORT_GROUPS);
	cr_expect_eq(offers.groups, LIMIT_PORT_GROUPS);
	expect_lets(false, false);
	hear(groups, ARRAY_SIZE(groups));
	expect_lets(true, false);
	port->ops->close(port);
}
