/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides whether a frame is the engine's or the kernel's. */
#include <string.h>

#include "base/bits.h"
#include "lcore/inside.h"
#include "lcore/exception/exception.h"
#include "lcore/raw/raw_frame.h"

#define ETHER_LENGTH 14u

void exception_addresses_set(struct exception_addresses *a, const struct engine_gid *gid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < LIMIT_GIDS; i++) {
		uint64_t half[2];

		if (gid_is_zero(&gid[i].gid))
			continue;
		memcpy(half, gid[i].gid.octet, sizeof(half));
		__atomic_store_n(&a->half[n][0], half[0], __ATOMIC_RELAXED);
		__atomic_store_n(&a->half[n++][1], half[1], __ATOMIC_RELAXED);
	}
	/*
	 * Release: pairs with exception_is_own. All entries below the count are written before it.
	 */
	__atomic_store_n(&a->count, n, __ATOMIC_RELEASE);
}

bool exception_is_own(const struct exception_addresses *a, const struct gid *g)
{
	uint32_t n = __atomic_load_n(&a->count, __ATOMIC_ACQUIRE);
	uint64_t half[2];

	memcpy(half, g->octet, sizeof(half));
	for (uint32_t i = 0; i < n; i++)
		if (__atomic_load_n(&a->half[i][1], __ATOMIC_RELAXED) == half[1] &&
		    __atomic_load_n(&a->half[i][0], __ATOMIC_RELAXED) == half[0])
			return true;
	return false;
}

static bool has_tag(uint16_t vlan, const uint8_t *frame, size_t length)
{
	return length >= ETHER_LENGTH + 4 && load_be16(frame + 12) == 0x8100 &&
	       (load_be16(frame + 14) & 0xfff) == vlan;
}

/* UDP port 4791, but not a valid packet: the destination address decides. */
static bool is_foreign(const struct exception_addresses *own, const uint8_t *frame, size_t length)
{
	struct gid to = { { 0 } };
	struct raw_frame f;

	raw_frame_parse(&f, frame, length);
	if (f.layers & FLOW_LAYER_IPV4) {
		to.octet[10] = to.octet[11] = 0xff;
		memcpy(to.octet + 12, f.key.dst_ip, 4);
	} else if (f.layers & FLOW_LAYER_IPV6) {
		memcpy(to.octet, f.key.dst_ip, 16);
	} else {
		return false;
	}
	return !gid_is_multicast(&to) && !exception_is_own(own, &to);
}

bool exception_wants(const struct exception_addresses *own, uint16_t vlan, enum reason why,
		     const uint8_t *frame, size_t length)
{
	if (length < ETHER_LENGTH || (vlan != 0 && !has_tag(vlan, frame, length)))
		return false;
	switch (why) {
	case REASON_NOT_ROCE:
	case REASON_VLAN_TAG: /* of another VLAN: the kernel decides */
	case REASON_FRAME_SHORT:
	case REASON_IP_HEADER:
	case REASON_IP_FRAGMENT: /* RoCEv2 packets are never fragments: the kernel reassembles them */
		return true;
	default:
		return is_foreign(own, frame, length);
	}
}
