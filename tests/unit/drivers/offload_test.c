/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of --offload, and uroced's messages about them. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "drivers/offload.h"

#define SUMS (OFFLOAD_IPV4_CKSUM_TX | OFFLOAD_IPV4_CKSUM_RX)
#define TAGS (OFFLOAD_VLAN_TX | OFFLOAD_VLAN_RX)

Test(offload, lists)
{
	static const struct {
		const char *list;
		uint32_t offloads;
	} rows[] = {
		{ "none", 0 },
		{ "auto", OFFLOAD_AUTO },
		{ "all", SUMS | TAGS },
		{ "ipv4-cksum", SUMS },
		{ "vlan", TAGS },
		{ "ipv4-cksum,vlan", SUMS | TAGS },
		{ "vlan,ipv4-cksum", SUMS | TAGS },
		{ "vlan,vlan", TAGS },
	};
	uint32_t offloads;

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cr_expect(offload_parse(rows[i].list, &offloads), "%s", rows[i].list);
		cr_expect_eq(offloads, rows[i].offloads, "%s: %x", rows[i].list, offloads);
	}
}

Test(offload, other_words_are_refused)
{
	static const char *const lists[] = {
		"",	     ",",	   "vlan,",	 ",vlan",     "vlan,,ipv4-cksum",
		"vlan ",     "multi-segs", "ipv4_cksum", "vlan,all",  "none,vlan",
		"VLAN",	     "ipv4-cksu",  "vlans",	 "vlan,none", "auto,vlan",
		"vlan,auto", "Auto",
	};
	uint32_t offloads;

	for (uint32_t i = 0; i < ARRAY_SIZE(lists); i++)
		cr_expect_not(offload_parse(lists[i], &offloads), "'%s'", lists[i]);
}

static void expect_text(uint32_t wanted, uint32_t done, const char *want)
{
	char text[OFFLOAD_TEXT];

	offload_describe(wanted, done, text);
	cr_expect_str_eq(text, want, "%s", text);
}

Test(offload, who_does_what)
{
	expect_text(0, 0, "");
	expect_text(SUMS, 0, "ipv4-cksum (tx software, rx software)");
	expect_text(SUMS, OFFLOAD_IPV4_CKSUM_RX, "ipv4-cksum (tx software, rx port)");
	expect_text(TAGS, TAGS, "vlan (tx port, rx port)");
	expect_text(OFFLOAD_AUTO, 0, "auto: none");
	expect_text(OFFLOAD_AUTO, SUMS, "auto: ipv4-cksum (tx port, rx port)");
	expect_text(OFFLOAD_AUTO, OFFLOAD_IPV4_CKSUM_RX, "auto: ipv4-cksum (tx software, rx port)");
	expect_text(SUMS | TAGS, OFFLOAD_VLAN_TX,
		    "ipv4-cksum (tx software, rx software), vlan (tx port, rx software)");
}
