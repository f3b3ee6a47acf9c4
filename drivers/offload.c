/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/offload.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"

static const struct {
	const char *name;
	uint32_t tx, rx;
} names[] = {
	{ "ipv4-cksum", OFFLOAD_IPV4_CKSUM_TX, OFFLOAD_IPV4_CKSUM_RX },
	{ "vlan", OFFLOAD_VLAN_TX, OFFLOAD_VLAN_RX },
};

/* The offloads of the name with this many characters. 0: there is no such name. */
static uint32_t offloads_of(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i].name) == length && memcmp(names[i].name, name, length) == 0)
			return names[i].tx | names[i].rx;
	return 0;
}

static uint32_t all_of_them(void)
{
	uint32_t all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		all |= names[i].tx | names[i].rx;
	return all;
}

bool offload_parse(const char *list, uint32_t *offloads)
{
	*offloads = 0;
	if (strcmp(list, "none") == 0)
		return true;
	if (strcmp(list, "all") == 0 || strcmp(list, "auto") == 0) {
		*offloads = list[1] == 'l' ? all_of_them() : OFFLOAD_AUTO;
		return true;
	}
	for (;; list++) {
		size_t length = strcspn(list, ",");
		uint32_t one = offloads_of(list, length);

		*offloads |= one;
		list += length;
		if (one == 0 || *list == '\0')
			return one != 0;
	}
}

static const char *who(uint32_t one, uint32_t done)
{
	return (one & done) != 0 ? "port" : "software";
}

void offload_describe(uint32_t wanted, uint32_t done, char text[OFFLOAD_TEXT])
{
	size_t n = 0;

	text[0] = '\0';
	if (wanted == OFFLOAD_AUTO) {
		n = (size_t)snprintf(text, OFFLOAD_TEXT, "auto: %s", done == 0 ? "none" : "");
		wanted = done;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names) && n < OFFLOAD_TEXT; i++)
		if ((wanted & (names[i].tx | names[i].rx)) != 0)
			n += (size_t)snprintf(text + n, OFFLOAD_TEXT - n, "%s%s (tx %s, rx %s)",
					      n > 0 && text[n - 1] == ')' ? ", " : "",
					      names[i].name, who(names[i].tx, done),
					      who(names[i].rx, done));
}
