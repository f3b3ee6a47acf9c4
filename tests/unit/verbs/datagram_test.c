/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles, UD and UC queue pairs, multicast: what is refused, and what must work. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static struct endpoint e;

static void setup(void)
{
	endpoint_open(&e);
}

static void teardown(void)
{
	endpoint_close(&e);
}

TestSuite(datagram, .init = setup, .fini = teardown, .timeout = 60);

/* Towards ourselves. */
static struct ibv_ah_attr to_self(void)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = e.gid, .sgid_index = GID_INDEX, .hop_limit = 64 },
	};
}

static union ibv_gid ipv4_gid(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, [12] = a, b, c, d } };
}

/* ---- address handles ---- */

Test(datagram, handles_that_are_refused)
{
	struct ibv_ah_attr good = to_self(), row[6];

	for (size_t i = 0; i < ROWS(row); i++)
		row[i] = good;
	row[0].is_global = 0;
	row[1].port_num = 0;
	row[2].port_num = 2;
	row[3].grh.sgid_index = 15; /* an empty entry */
	row[4].grh.sgid_index = 0; /* IPv6, towards IPv4 */
	memset(&row[5].grh.dgid, 0, sizeof(row[5].grh.dgid));
	for (size_t i = 0; i < ROWS(row); i++) {
		errno = 0;
		cr_expect_null(ibv_create_ah(e.pd, &row[i]), "row %zu", i);
		cr_expect_eq(errno, EINVAL, "row %zu: %s", i, strerror(errno));
	}
}

Test(datagram, nobody_answers_on_a_device_of_this_host_alone)
{
	struct ibv_ah_attr attr = to_self();
	uint16_t vid = 0;
	uint8_t mac[6];

	attr.grh.dgid = ipv4_gid(192, 0, 2, 1);
	errno = 0;
	cr_expect_null(ibv_create_ah(e.pd, &attr));
	cr_expect_eq(errno, EHOSTUNREACH, "%s", strerror(errno));
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, &attr, mac, &vid), EHOSTUNREACH);
}

Test(datagram, own_addresses_and_groups_resolve_at_once)
{
	struct ibv_ah_attr attr = to_self();
	uint8_t mac[6] = { 0 };
	struct ibv_ah *ah;
	uint16_t vid = 0;

	ah = ibv_create_ah(e.pd, &attr);
	cr_assert_not_null(ah, "%m");
	cr_expect_eq(ibv_dealloc_pd(e.pd), EBUSY, "the handle is in it");
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, &attr, mac, &vid), 0);
	cr_expect_eq(vid, 0xffff, "untagged");
	cr_expect_eq(mac[0] & 1, 0);
	cr_expect_neq(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5], 0);
	attr.grh.dgid = ipv4_gid(239, 1, 2, 3);
	ah = ibv_create_ah(e.pd, &attr);
	cr_assert_not_null(ah, "%m");
	cr_expect_eq(ibv_destroy_ah(ah), 0);
}

Test(datagram, a_handle_from_what_was_received)
{
	/* behind 20 octets of nothing: IPv4, TOS 8, TTL 7, 127.0.0.1 -> 127.0.0.1 */
	static const uint8_t ip4[20] = { 0x45, 8, 0,   64, 0, 0, 0x40, 0, 7, 17,
					 0,    0, 127, 0,  0, 1, 127,  0, 0, 1 };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	uint8_t octets[40] = { 0 };
	struct ibv_grh *grh = (struct ibv_grh *)octets;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	memcpy(octets + 20, ip4, 20);
	cr_assert_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), 0, "%m");
	cr_expect_eq(attr.is_global, 1);
	cr_expect_eq(attr.port_num, 1);
	cr_expect_eq(attr.grh.sgid_index, GID_INDEX);
	cr_expect_eq(attr.grh.hop_limit, 7);
	cr_expect_eq(attr.grh.traffic_class, 8);
	cr_expect_arr_eq(attr.grh.dgid.raw, e.gid.raw, 16);
	ah = ibv_create_ah_from_wc(e.pd, &wc, grh, 1);
	cr_assert_not_null(ah, "%m");
	cr_expect_eq(ibv_destroy_ah(ah), 0);

	/* IPv6: traffic class 0x12, flow label 0x34567, hop limit 9, from and to our link-local address */
	memcpy(octets, "\x61\x23\x45\x67\x00\x10\x11\x09", 8);
	cr_assert_eq(ibv_query_gid(e.context, 1, 0, &grh->sgid), 0);
	grh->dgid = grh->sgid;
	cr_assert_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), 0, "%m");
	cr_expect_eq(attr.grh.sgid_index, 0);
	cr_expect_eq(attr.grh.hop_limit, 9);
	cr_expect_eq(attr.grh.traffic_class, 0x12);
	cr_expect_eq(attr.grh.flow_label, 0x34567);

	errno = 0;
	grh->dgid.raw[15] ^= 1;
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), -1, "not our address");
	cr_expect_eq(errno, ENOENT);
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 2, &wc, grh, &attr), -1, "no such port");
	cr_expect_eq(errno, EINVAL);
	octets[0] = 0;
	octets[20] = 0;
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), -1, "no IP header");
	cr_expect_eq(errno, EPROTONOSUPPORT);
	wc.wc_flags = 0;
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), -1, "no GRH");
	cr_expect_eq(errno, EINVAL);
}

Test(datagram, many_handles_and_none_is_left)
{
	struct ibv_ah_attr attr = to_self();
	struct ibv_ah *ah[512];

	for (size_t i = 0; i < ROWS(ah); i++) {
		ah[i] = ibv_create_ah(e.pd, &attr);
		cr_assert_not_null(ah[i], "handle %zu: %m", i);
	}
	for (size_t i = 0; i < ROWS(ah); i++)
		cr_assert_eq(ibv_destroy_ah(ah[i]), 0);
}
