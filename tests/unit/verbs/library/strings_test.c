/* SPDX-License-Identifier: BSD-3-Clause */
/* The strings and rates of rdma-core 44, as its own library returns them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>

#define COUNT(a) (int)(sizeof(a) / sizeof((a)[0]))

/* clang-format off */
static const char *const ibv_wc_status_str_words[] = {
	"unknown",
	"success",
	"local length error",
	"local QP operation error",
	"local EE context operation error",
	"local protection error",
	"Work Request Flushed Error",
	"memory management operation error",
	"bad response error",
	"local access error",
	"remote invalid request error",
	"remote access error",
	"remote operation error",
	"transport retry counter exceeded",
	"RNR retry counter exceeded",
	"local RDD violation error",
	"remote invalid RD request",
	"aborted error",
	"invalid EE context number",
	"invalid EE context state",
	"fatal error",
	"response timeout error",
	"general error",
	"TM error",
	"TM software rendezvous",
	"unknown",
	"unknown",
};

static const char *const ibv_node_type_str_words[] = {
	"unknown",
	"unknown",
	"InfiniBand channel adapter",
	"InfiniBand switch",
	"InfiniBand router",
	"iWARP NIC",
	"usNIC",
	"usNIC UDP",
	"unspecified",
	"unknown",
};

static const char *const ibv_port_state_str_words[] = {
	"unknown",
	"no state change (NOP)",
	"down",
	"init",
	"armed",
	"active",
	"active defer",
	"unknown",
};

static const char *const ibv_event_type_str_words[] = {
	"unknown",
	"CQ error",
	"local work queue catastrophic error",
	"invalid request local work queue error",
	"local access violation work queue error",
	"communication established",
	"send queue drained",
	"path migrated",
	"path migration request error",
	"local catastrophic error",
	"port active",
	"port error",
	"LID change",
	"P_Key change",
	"SM change",
	"SRQ catastrophic error",
	"SRQ limit reached",
	"last WQE reached",
	"client reregistration",
	"GID table change",
	"WQ fatal",
	"unknown",
};

static const struct {
	int rate, multiple, mbps;
} rates[] = {
	{ -1, -1, -1 },
	{ 0, -1, -1 },
	{ 1, -1, -1 },
	{ 2, 1, 2500 },
	{ 3, 4, 10000 },
	{ 4, 12, 30000 },
	{ 5, 2, 5000 },
	{ 6, 8, 20000 },
	{ 7, 16, 40000 },
	{ 8, 24, 60000 },
	{ 9, 32, 80000 },
	{ 10, 48, 120000 },
	{ 11, -1, 14062 },
	{ 12, -1, 56250 },
	{ 13, -1, 112500 },
	{ 14, -1, 168750 },
	{ 15, -1, 25781 },
	{ 16, -1, 103125 },
	{ 17, -1, 206250 },
	{ 18, -1, 309375 },
	{ 19, 11, 28125 },
	{ 20, 20, 53125 },
	{ 21, 160, 425000 },
	{ 22, 240, 637500 },
	{ 23, 320, 850000 },
	{ 24, 480, 1275000 },
	{ 25, -1, -1 },
	{ 26, -1, -1 },
};
/* clang-format on */

Test(strings, ibv_wc_status_str)
{
	for (int i = -1; i < COUNT(ibv_wc_status_str_words) - 1; i++)
		cr_expect_str_eq(ibv_wc_status_str((enum ibv_wc_status)i),
				 ibv_wc_status_str_words[i + 1], "%d", i);
}

Test(strings, ibv_node_type_str)
{
	for (int i = -1; i < COUNT(ibv_node_type_str_words) - 1; i++)
		cr_expect_str_eq(ibv_node_type_str((enum ibv_node_type)i),
				 ibv_node_type_str_words[i + 1], "%d", i);
}

Test(strings, ibv_port_state_str)
{
	for (int i = -1; i < COUNT(ibv_port_state_str_words) - 1; i++)
		cr_expect_str_eq(ibv_port_state_str((enum ibv_port_state)i),
				 ibv_port_state_str_words[i + 1], "%d", i);
}

Test(strings, ibv_event_type_str)
{
	for (int i = -1; i < COUNT(ibv_event_type_str_words) - 1; i++)
		cr_expect_str_eq(ibv_event_type_str((enum ibv_event_type)i),
				 ibv_event_type_str_words[i + 1], "%d", i);
}

Test(strings, rates_both_ways)
{
	for (int i = 0; i < COUNT(rates); i++) {
		enum ibv_rate rate = (enum ibv_rate)rates[i].rate;

		cr_expect_eq(ibv_rate_to_mult(rate), rates[i].multiple, "rate %d", rates[i].rate);
		cr_expect_eq(ibv_rate_to_mbps(rate), rates[i].mbps, "rate %d", rates[i].rate);
		if (rates[i].multiple > 0)
			cr_expect_eq(mult_to_ibv_rate(rates[i].multiple), rate);
		if (rates[i].mbps > 0)
			cr_expect_eq(mbps_to_ibv_rate(rates[i].mbps), rate);
	}
}

Test(strings, numbers_that_are_not_a_rate)
{
	cr_expect_eq(mult_to_ibv_rate(0), IBV_RATE_MAX);
	cr_expect_eq(mult_to_ibv_rate(-1), IBV_RATE_MAX);
	cr_expect_eq(mult_to_ibv_rate(3), IBV_RATE_MAX);
	cr_expect_eq(mbps_to_ibv_rate(-1), IBV_RATE_MAX);
	cr_expect_eq(mbps_to_ibv_rate(2501), IBV_RATE_MAX);
}

/* Of rdma-core's driver.h. Drivers look for what the kernel says of a device. */
int ibv_read_ibdev_sysfs_file(char *buffer, size_t size, void *device, const char *format, ...);

Test(strings, a_device_has_no_files_of_the_kernel)
{
	char buffer[8];

	errno = 0;
	cr_expect_eq(ibv_read_ibdev_sysfs_file(buffer, sizeof(buffer), NULL, "board_id"), -1);
	cr_expect_eq(errno, ENOENT);
}
