/* SPDX-License-Identifier: BSD-3-Clause */
/* The administrator's defaults in /etc/rdma/rsocket: one number in each file (rsocket(7)). */
#include <stdio.h>

#include "rdmacm/rsockets/rs.h"

#define FOLDER "/etc/rdma/rsocket/"

static struct rs_defaults defaults = {
	.sizes = { .receive_buffer = 1 << 17,
		   .send_buffer = 1 << 17,
		   .send_queue = 384,
		   .receive_queue = 384,
		   .inline_data = 64 },
	.spin_us = 10,
	.wake_up_ms = 5000,
};

static uint32_t number_in(const char *path, uint32_t otherwise, uint32_t max)
{
	FILE *file = fopen(path, "re");
	unsigned long number;
	bool is_there;

	if (file == NULL)
		return otherwise;
	is_there = fscanf(file, "%lu", &number) == 1;
	fclose(file);
	return is_there ? (uint32_t)MIN_OF(number, max) : otherwise;
}

static void read_files(void)
{
	struct rs_sizes *s = &defaults.sizes;

	s->receive_buffer = number_in(FOLDER "mem_default", s->receive_buffer, INT32_MAX);
	s->send_buffer = number_in(FOLDER "wmem_default", s->send_buffer, INT32_MAX);
	s->send_queue = (uint16_t)number_in(FOLDER "sqsize_default", s->send_queue, RS_QUEUE_MAX);
	s->receive_queue =
		(uint16_t)number_in(FOLDER "rqsize_default", s->receive_queue, RS_QUEUE_MAX);
	s->inline_data = (uint16_t)number_in(FOLDER "inline_default", s->inline_data, UINT16_MAX);
	s->iomap_entries = rs_entries_from_scale(
		rs_entries_to_scale(number_in(FOLDER "iomap_size", 0, UINT16_MAX)));
	defaults.spin_us = number_in(FOLDER "polling_time", defaults.spin_us, 1000000);
	defaults.wake_up_ms =
		(int)number_in(FOLDER "wake_up_interval", (uint32_t)defaults.wake_up_ms, INT32_MAX);
	if (defaults.wake_up_ms == 0)
		defaults.wake_up_ms = 1;
}

const struct rs_defaults *rs_defaults(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_files);
	return &defaults;
}

static uint16_t clamp_queue(uint16_t size, uint32_t max)
{
	return (uint16_t)MAX_OF(MIN_OF((uint32_t)size, max), LIMIT_RS_QUEUE_MIN);
}

void rs_sizes_clamp(struct rs_sizes *s, uint32_t device_max)
{
	uint32_t max = MIN_OF(device_max, RS_QUEUE_MAX);

	s->send_queue = clamp_queue(s->send_queue, max);
	s->receive_queue = clamp_queue(s->receive_queue, max);
	s->send_buffer = MAX_OF(s->send_buffer, 2 * LIMIT_RS_LOW_WATER);
	s->receive_buffer = MAX_OF(s->receive_buffer, 2 * LIMIT_RS_LOW_WATER) & ~1u;
}
