/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "switch.h"

static void forward(struct taker *t, struct fabric *f, struct parcel *p)
{
	struct net_switch *s = container_of_type(t, struct net_switch, taker);
	uint32_t host = parcel_host(p, false);

	if (host >= s->hosts) {
		s->unknown++;
		parcel_free(f, p);
		return;
	}
	line_put(&s->port[s->route[host]], f, p);
}

void switch_init(struct net_switch *s, uint32_t ports, uint32_t hosts, uint64_t shared_octets)
{
	*s = (struct net_switch){
		.taker.take = forward, .shared.room = shared_octets, .ports = ports, .hosts = hosts
	};
	s->port = calloc(ports, sizeof(*s->port));
	s->route = calloc(hosts, sizeof(*s->route));
	if (s->port == NULL || s->route == NULL)
		abort();
}

void switch_free(struct net_switch *s)
{
	free(s->port);
	free(s->route);
}
