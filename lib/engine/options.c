/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks whether an engine can be made with a program's options; creates nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_lcore.h>

#include "base/bits.h"
#include "engine/address.h"
#include "engine/inside.h"

static_assert(UROCE_ADDRESSES <= LIMIT_ADDRESSES, "the engine has each address that it is given");

static const char *what_is_wrong(const struct uroce_options *o)
{
	const struct port *port = port_of_program(o->port);

	if (rte_lcore_count() == 0)
		return "EAL is not initialised: call rte_eal_init() first";
	if (o->name != NULL &&
	    (o->name[0] == '\0' || strlen(o->name) >= sizeof(((struct engine *)0)->name)))
		return "the name must have 1 .. 31 characters";
	if (port != NULL && port->taken)
		return "another engine has the port";
	if (o->lcores == 0 || o->lcores > LIMIT_LCORES)
		return "lcores must be 1 .. 16";
	if (o->addresses > ARRAY_SIZE(o->address) || o->gateways > ARRAY_SIZE(o->gateway))
		return "more than 16 addresses or 2 gateways";
	if (o->vlan > 4094)
		return "the VLAN id must be 0 .. 4094";
	if (port != NULL && (port->queues == 0 || port->queues > LIMIT_LCORES))
		return "the port must have 1 .. 16 queues";
	return NULL;
}

static bool addresses_right(const struct uroce_options *o, char *why, size_t why_size)
{
	for (uint32_t i = 0; i < o->addresses; i++) {
		const struct uroce_address *a = &o->address[i];
		uint32_t most = address_is_ipv4(a) ? 32 : 128;
		const char *wrong = address_wrong(a);

		if (wrong != NULL)
			snprintf(why, why_size, "address[%u] %s", i, wrong);
		else if (a->prefix > most)
			snprintf(why, why_size, "address[%u].prefix is %u, but must be 0 .. %u", i,
				 a->prefix, most);
		else
			continue;
		return false;
	}
	for (uint32_t i = 1; i < o->addresses; i++)
		for (uint32_t k = 0; k < i; k++)
			if (address_equal(&o->address[i], &o->address[k])) {
				snprintf(why, why_size, "address[%u] is address[%u] once more", i,
					 k);
				return false;
			}
	return true;
}

static bool gateways_right(const struct uroce_options *o, char *why, size_t why_size)
{
	for (uint32_t i = 0; i < o->gateways; i++) {
		const char *wrong = address_wrong(&o->gateway[i]);

		for (uint32_t k = 0; wrong == NULL && k < o->addresses; k++)
			if (address_equal(&o->gateway[i], &o->address[k]))
				wrong = "is an address of the engine";
		if (wrong == NULL)
			continue;
		snprintf(why, why_size, "gateway[%u] %s", i, wrong);
		return false;
	}
	if (o->gateways < 2 || address_is_ipv4(&o->gateway[0]) != address_is_ipv4(&o->gateway[1]))
		return true;
	snprintf(why, why_size, "gateway[0] and gateway[1] are of one address family");
	return false;
}

int engine_options_check(const struct uroce_options *o, char *why, size_t why_size)
{
	const char *wrong = what_is_wrong(o);

	if (wrong != NULL)
		snprintf(why, why_size, "%s", wrong);
	return wrong == NULL && addresses_right(o, why, why_size) &&
			       gateways_right(o, why, why_size)
		       ? 0
		       : EINVAL;
}
