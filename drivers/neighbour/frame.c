/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries about addresses, and helpers that begin a frame and compute its checksum. */
#include <rte_ip.h>

#include "base/bits.h"
#include "drivers/neighbour/table.h"

const struct mac mac_broadcast = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };

bool mac_is_multicast(const struct mac *m)
{
	return m->octet[0] & 1;
}

bool mac_equal(const struct mac *a, const struct mac *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool mac_is_zero(const struct mac *m)
{
	return mac_equal(m, &(struct mac){ { 0 } });
}

struct gid gid_of_ipv4(const void *octets)
{
	struct gid g = { { [10] = 0xff, [11] = 0xff } };

	memcpy(g.octet + 12, octets, 4);
	return g;
}

bool gid_is_unspecified(const struct gid *g)
{
	static const struct gid any;

	return gid_equal(g, &any) || (gid_is_ipv4(g) && load_be32(g->octet + 12) == 0);
}

uint8_t *frame_begin(const struct neighbour_table *t, struct neighbour_frames *out,
		     const struct mac *dst, uint16_t ethertype, uint32_t l3_length)
{
	uint32_t header = t->vlan != 0 ? 18 : 14;
	uint32_t length = MAX_OF(header + l3_length, 60u);
	uint8_t *frame = out->octets + out->used;

	if (out->count == LIMIT_NEIGHBOUR_FRAMES ||
	    length > LIMIT_NEIGHBOUR_FRAME_BYTES - out->used)
		return NULL;
	memset(frame, 0, length);
	memcpy(frame, dst->octet, 6);
	memcpy(frame + 6, t->mac.octet, 6);
	if (t->vlan != 0) {
		store_be16(frame + 12, ETHERTYPE_VLAN_);
		store_be16(frame + 14, t->vlan);
	}
	store_be16(frame + header - 2, ethertype);
	out->frame[out->count].offset = out->used;
	out->frame[out->count].length = length;
	out->count++;
	out->used += length;
	return frame + header;
}

uint16_t checksum_of(const void *octets, uint32_t length)
{
	return rte_be_to_cpu_16((uint16_t)~rte_raw_cksum(octets, length));
}
