/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for what is read of rtnetlink: announcements of neighbours and routes, and the
 * attributes of any message. Only the kernel may send there, so this is about our own arithmetic:
 * whatever a message claims of its lengths, nothing behind it is read.
 */
#include <linux/rtnetlink.h>

#include "base/bits.h"
#include "drivers/neighbour/kernel_watch.h"
#include "drivers/netlink.h"
#include "input.h"

#define IFINDEX 3u

static struct kernel_watch watch;
static uint32_t lost;

static void count_lost(void *arg, const struct gid *hop)
{
	demand(arg == &lost && hop != NULL);
	lost++;
}

static void remember(void)
{
	struct gid hop = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 } };
	struct gid other = { { 0xfe, 0x80, [15] = 2 } };
	struct mac mac = { { 2, 0, 0, 0, 0, 2 } };

	kernel_watch_put(&watch, &hop, &mac);
	kernel_watch_put(&watch, &other, &mac);
}

/*
 * As the callbacks of mnl_cb_run see a message: its length is the one that the kernel's reader
 * found.
 */
static void look_at_attributes(const struct nlmsghdr *h, int left)
{
	static const size_t body[] = { sizeof(struct ndmsg), sizeof(struct rtmsg),
				       sizeof(struct ifinfomsg), 0 };
	uint8_t copy[16];

	for (; mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left)) {
		for (size_t i = 0; i < ARRAY_SIZE(body); i++) {
			if (!netlink_has_body(h, body[i]))
				continue;
			for (uint16_t type = 0; type < 8; type++) {
				const void *v = netlink_attribute(h, body[i], type, 16);

				if (v != NULL)
					memcpy(copy, v, 16);
				v = netlink_attribute(h, body[i], type, 4);
				if (v != NULL)
					memcpy(copy, v, 4);
			}
		}
	}
}

/*
 * No message of the kernel has 2^31 octets. libmnl 1.0.4 takes such a length for a negative one, and
 * reads on.
 */
static void shorten(uint8_t *octets, size_t size)
{
	uint32_t length;

	for (size_t at = 0; at + sizeof(struct nlmsghdr) <= size; at += NLMSG_ALIGN(length)) {
		memcpy(&length, octets + at, sizeof(length));
		length &= INT32_MAX >> 1;
		memcpy(octets + at, &length, sizeof(length));
		if (length < sizeof(struct nlmsghdr))
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *octets = malloc(size + (size == 0)); /* of exactly that length, and aligned */

	if (size > 0)
		memcpy(octets, data, size);
	shorten(octets, size);
	memset(&watch, 0, sizeof(watch));
	watch.ifindex = IFINDEX;
	lost = 0;
	remember();
	kernel_watch_read(&watch, octets, size, count_lost, &lost);
	look_at_attributes(octets, (int)size);
	free(octets);
	return 0;
}
