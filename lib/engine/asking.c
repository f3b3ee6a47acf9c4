/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions of a program to an engine: its version, description and counters. */
#include <stdio.h>
#include <string.h>

#include "base/reason.h"
#include "control/statistics.h"
#include "engine/inside.h"
#include "protocol/command.h"

#define COUNTERS(X)      \
	X(rx_packets)    \
	X(rx_octets)     \
	X(tx_packets)    \
	X(tx_octets)     \
	X(retransmitted) \
	X(timeouts)      \
	X(rnr_naks)      \
	X(ecn_marked)    \
	X(cnps_sent)     \
	X(crossed)       \
	X(polls)         \
	X(idle_polls)    \
	X(kernel_given)  \
	X(kernel_taken)  \
	X(clients)       \
	X(qps)           \
	X(cqs)           \
	X(mrs)           \
	X(connections)

#define ONE(name) +1
#define NUMBERS	  (0 COUNTERS(ONE))

const char *uroce_version(void)
{
	return UROCE_VERSION;
}

uint32_t uroce_counters(struct uroce_engine *u, struct uroce_counter *counters, uint32_t n)
{
	struct uroce_counter all[NUMBERS + REASON_COUNT - 1];
	struct visit v = live_visit(u);
	struct reply_statistics s;
	uint32_t i = 0;

	if (v.engine == NULL)
		return 0;
	uroce_statistics(u, &s);
	live_part(v);
#define READ(field) all[i++] = (struct uroce_counter){ #field, s.field };
	COUNTERS(READ)
#undef READ
	for (uint32_t r = 1; r < REASON_COUNT; r++)
		all[i++] = (struct uroce_counter){ reason_name((enum reason)r), s.by_reason[r] };
	if (n > 0)
		memcpy(counters, all, (n < i ? n : i) * sizeof(all[0]));
	return i;
}

bool uroce_idle_expired(const struct uroce_engine *u)
{
	struct visit v = live_visit(u);
	bool expired;

	if (v.engine == NULL)
		return false;
	/* A flag of the control thread. */
	expired = __atomic_load_n(&v.engine->control->idle_expired, __ATOMIC_ACQUIRE) != 0;
	live_part(v);
	return expired;
}

static void describe(struct engine *e, char *text, size_t size)
{
	char address[64];
	size_t n = (size_t)snprintf(text, size, "%s", e->name);

	/* The link-local address is of little use to people. */
	for (uint32_t i = 1, shown = 0; i < LIMIT_GIDS && n < size; i++)
		if (!gid_is_zero(&e->gid[i].gid))
			n += (size_t)snprintf(text + n, size - n, "%s%s", shown++ == 0 ? " " : ",",
					      gid_text(&e->gid[i].gid, address, sizeof(address)));
	if (n < size)
		snprintf(text + n, size - n, ", %s%s, IB MTU %u",
			 e->port != NULL ? "port " : "this host only",
			 e->port != NULL ? e->port->name : "", 128u << e->active_mtu);
}

void uroce_describe(const struct uroce_engine *u, char *text, size_t size)
{
	struct visit v = live_visit(u);

	if (size > 0)
		text[0] = '\0';
	if (v.engine == NULL)
		return;
	pthread_mutex_lock(&v.engine->control_lock);
	describe(v.engine, text, size);
	pthread_mutex_unlock(&v.engine->control_lock);
	live_part(v);
}
