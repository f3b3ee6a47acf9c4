/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt's command `show config`: every option of uroced, as it is in force. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_log.h>

#include "config/limits.h"
#include "control/statistics.h"
#include "drivers/ethdev/netdev.h"
#include "drivers/log.h"
#include "drivers/offload.h"
#include "drivers/port.h"
#include "engine/address.h"
#include "engine/port.h"
#include "protocol/command.h"
#include "uroced_commands.h"

static void row(const char *name, const char *value)
{
	printf("%-16s %s\n", name, value[0] != '\0' ? value : "none");
}

static void number_row(const char *name, uint32_t value)
{
	char text[16] = "";

	if (value != 0)
		snprintf(text, sizeof(text), "%u", value);
	row(name, text);
}

/* With `ours` NULL they are next hops, which have no prefix. */
static void addresses_row(const char *name, const struct uroce_address *a, uint32_t n,
			  const char *ours)
{
	char text[1024] = "", one[INET6_ADDRSTRLEN];
	size_t used = 0;

	for (uint32_t i = 0; i < n && used < sizeof(text); i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? "," : "",
					 address_text(&a[i], one, sizeof(one)));
		if (ours != NULL && used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "/%u",
						 a[i].prefix);
	}
	row(name, n == 0 && ours != NULL ? ours : text);
}

static uint32_t mtu_in_force(const struct uroce_options *e)
{
	const struct port *p = port_of_program(e->port);

	if (e->mtu != 0)
		return e->mtu;
	return p != NULL ? p->mtu : LIMIT_MTU_WITHOUT_PORT;
}

static void show_descriptors(const struct uroced_options *o)
{
	if (o->descriptors == 0 && o->port[0] != '\0')
		row("descriptors", "the driver's choice");
	else
		number_row("descriptors", o->descriptors);
}

static void show_offloads(const struct uroced_options *o)
{
	const struct port *p = port_of_program(o->engine.port);
	char text[OFFLOAD_TEXT];

	offload_describe(o->offloads, p != NULL ? p->offloads : 0, text);
	row("offload", text);
}

static void show_socket(const struct uroced_options *o)
{
	char text[24] = "";

	row("socket", o->socket);
	snprintf(text, sizeof(text), "%04o",
		 o->engine.socket_mode != 0 ? (unsigned int)o->engine.socket_mode : 0600u);
	row("socket-mode", text);
	text[0] = '\0';
	if (o->engine.socket_gid >= 0)
		snprintf(text, sizeof(text), "%" PRId64, o->engine.socket_gid);
	row("socket-group", text);
}

static void show_priority(const struct uroce_options *e)
{
	struct reply_statistics s;
	char text[48];

	uroce_statistics(console.engine, &s);
	snprintf(text, sizeof(text), "%s%.31s", e->urgent ? "auto: " : "", s.priority);
	row("priority", text);
}

void console_show_config(void)
{
	const struct uroced_options *o = console.options;
	const struct uroce_options *e = &o->engine;
	bool shared = o->netdev[0] != '\0', wire = e->port != NULL;
	char text[512];

	uroce_describe(console.engine, text, sizeof(text));
	row("device", text);
	row("netdev", o->netdev);
	snprintf(text, sizeof(text), "%s%s",
		 o->netdev_used == NETDEV_AF_XDP ? "af_xdp" : "af_packet",
		 o->netdev_driver == NETDEV_AUTO ? " (auto)" : "");
	row("netdev-driver", shared ? text : "");
	row("port", o->port);
	show_descriptors(o);
	show_offloads(o);
	row("kernel-interface", o->kernel_interface);
	addresses_row("ip", e->address, e->addresses, wire ? "of the interface" : "of this host");
	addresses_row("gateway", e->gateway, e->gateways, NULL);
	number_row("mtu", mtu_in_force(e));
	number_row("vlan", e->vlan);
	show_socket(o);
	row("config", o->config);
	number_row("lcores", e->lcores);
	row("idle", e->adaptive ? "adaptive" : "spin");
	show_priority(e);
	number_row("exit-when-idle", e->exit_when_idle);
	row("confine", o->unconfined ? "off" : "on");
	row("log", log_level_name((uint32_t)rte_log_get_level(uroce_log)));
	row("cmdline-file", o->cmdline_file);
	row("interactive", o->interactive ? "on" : "off");
}
