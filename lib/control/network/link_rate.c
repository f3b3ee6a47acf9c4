/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rate of an Ethernet link in terms of InfiniBand: a number of lanes and the speed of one
 * (IBTA 14.2.5.6, PortInfo). A rate between two rows gets the later row, and an unknown one the first, as
 * in Linux for RoCE devices (ib_get_eth_speed).
 */
#include "base/bits.h"
#include "control/control.h"

/* Bits of ibv_port_attr */
enum {
	LANES_1 = 1,
	LANES_4 = 2,
	LANES_8 = 4,
	LANES_2 = 16,
};

enum {
	SDR = 1, /* Gbit/s of a lane: 2.5 */
	DDR = 2, /* 5 */
	FDR10 = 8, /* 10 */
	EDR = 32, /* 25 */
	HDR = 64, /* 50 */
	NDR = 128, /* 100 */
};

static const struct {
	uint32_t most; /* Mbit/s */
	uint8_t speed, width;
} rows[] = {
	{ 1000, SDR, LANES_1 },	      { 10000, FDR10, LANES_1 }, { 20000, DDR, LANES_4 },
	{ 25000, EDR, LANES_1 },      { 40000, FDR10, LANES_4 }, { 50000, EDR, LANES_2 },
	{ 100000, EDR, LANES_4 },     { 200000, HDR, LANES_4 },	 { 400000, NDR, LANES_4 },
	{ UINT32_MAX, NDR, LANES_8 },
};

void link_rate(uint32_t mbits, uint8_t *speed, uint8_t *width)
{
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(rows) && mbits > rows[i].most)
		i++;
	*speed = rows[i].speed;
	*width = rows[i].width;
}
