/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The resource behind a port that only one engine at a time may have: the Linux interface that its
 * driver reaches, or the client's end of a memif, whose server takes one client. It is found from
 * the port, or from a device's arguments before the device exists. Making a second device may harm
 * the first engine: a tap is shut down when its second process ends, and net_af_xdp leaves a
 * program behind.
 */
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_kvargs.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"

#define MEMIF_SOCKET "/run/memif.sock" /* the default of net_memif */
#define MEMIF_ID     "0"

static const char *value_of(const struct rte_kvargs *list, const char *key, const char *other)
{
	const char *found = list != NULL ? rte_kvargs_get(list, key) : NULL;

	return found != NULL ? found : other;
}

/* FNV-1a */
static uint32_t hash(uint32_t h, const char *text)
{
	do {
		h = (h ^ (uint8_t)*text) * 16777619u;
	} while (*text++ != '\0');
	return h;
}

static uint32_t memif_end(const struct rte_kvargs *list)
{
	const char *role = value_of(list, "role", "client");
	uint32_t h = 2166136261u;

	if (strcmp(role, "server") == 0 || strcmp(role, "master") == 0)
		return 0; /* the socket belongs to this process, and its message says so */
	h = hash(h, value_of(list, "socket", MEMIF_SOCKET));
	return CLAIM_MEMIF | hash(h, value_of(list, "id", MEMIF_ID));
}

/* A tap with a remote interface takes that interface's frames. */
static const char *const keys[] = { "remote", "iface", "rx_iface", "tx_iface", "rx_iface_in" };

static uint32_t interface_at(const struct rte_kvargs *list, size_t key)
{
	const char *name = value_of(list, keys[key], NULL);

	return name != NULL ? if_nametoindex(name) : 0;
}

/* `name`: the driver's name, or a device's name, which begins with it. */
static bool reaches_interfaces(const char *name)
{
	static const char *const drivers[] = { "net_af_packet", "net_af_xdp", "net_pcap",
					       "net_tap" };

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
		if (strncmp(name, drivers[i], strlen(drivers[i])) == 0)
			return true;
	return false;
}

static bool is_memif(const char *name)
{
	return strncmp(name, "net_memif", strlen("net_memif")) == 0;
}

uint32_t ethdev_claims(uint16_t id, const struct rte_eth_dev_info *info)
{
	const struct rte_devargs *args = rte_dev_devargs(info->device);
	struct rte_kvargs *list =
		args != NULL && args->args != NULL ? rte_kvargs_parse(args->args, NULL) : NULL;
	uint32_t claims = is_memif(info->driver_name) ? memif_end(list) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && claims == 0; i++)
		if (reaches_interfaces(info->driver_name))
			claims = interface_at(list, i);
	rte_kvargs_free(list);
	return claims != 0 ? claims : ethdev_ifindex(id, info);
}

static bool is_free(uint32_t claims, uint16_t vlan, char *why, size_t why_size)
{
	struct claim c = claim_none();
	bool taken = claims != 0 && !claim_take(&c, claims, vlan, why, why_size);

	claim_end(&c);
	return !taken;
}

bool ethdev_device_is_free(const char *device, uint16_t vlan, char *why, size_t why_size)
{
	const char *comma = strchr(device, ',');
	struct rte_kvargs *list = rte_kvargs_parse(comma != NULL ? comma + 1 : "", NULL);
	bool all = !is_memif(device) || is_free(memif_end(list), vlan, why, why_size);

	for (size_t i = 0; i < ARRAY_SIZE(keys) && all; i++)
		if (reaches_interfaces(device))
			all = is_free(interface_at(list, i), vlan, why, why_size);
	rte_kvargs_free(list);
	return all;
}
