/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of DPDK's drivers send and receive frames in memory that the EAL does not know. */
#include <string.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"

/* A driver that is not named here gets the EAL's memory, as every driver may expect. */
static const struct {
	const char *driver;
	const char *unless; /* an argument of the device; NULL: none */
} any[] = {
	/* Copies between the kernel's ring and the buffers. */
	{ "net_af_packet", NULL },
	/* Registers the pool's memory with the kernel by its address. */
	{ "net_af_xdp", NULL },
	/* Copies to and from memory of its own. With zero-copy it gives its peer the files of the EAL's memory. */
	{ "net_memif", "zero-copy" },
	/* Fills buffers or not, and frees what it is to send. */
	{ "net_null", NULL },
	/* libpcap copies received frames, and the driver those that it sends. */
	{ "net_pcap", NULL },
	/* readv() and writev() of the buffers. */
	{ "net_tap", NULL },
	/* Copies between the guest's memory and the buffers. */
	{ "net_vhost", NULL },
};

/*
 * Not net_ring, though it touches no frame: the other port's engine may have buffers of a pool that is freed, and private
 * memory then is gone. net_virtio_user tells its peer of the EAL's memory only.
 */
bool ethdev_takes_any_buffer(const struct rte_eth_dev_info *info)
{
	char value[32] = "";

	for (size_t i = 0; i < ARRAY_SIZE(any); i++) {
		if (strcmp(info->driver_name, any[i].driver) != 0)
			continue;
		if (any[i].unless != NULL)
			ethdev_devarg(info, any[i].unless, value, sizeof(value));
		return value[0] == '\0';
	}
	return false;
}
