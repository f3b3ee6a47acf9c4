/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: an interface and the kernel's settings for it, on machines made of files. */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/bits.h"
#include "doctor_tree.h"

TestSuite(doctor_port, .timeout = 60);

#define ETH(file, text)                               \
	{                                             \
		"sys/class/net/eth0/" file, text "\n" \
	}

#define GROUP                                                               \
	{                                                                   \
		DEVICES NIC "/iommu_group", "->../../kernel/iommu_groups/1" \
	}
#define HOLDER                                 \
	{                                      \
		"proc/7/fd/5", "->/dev/vfio/1" \
	}

Test(doctor_port, privileges)
{
	static const struct doctor_row rows[] = {
		{ "no port", .verdict = CHECK_NONE },
		{ "root",
		  { ETH("mtu", "1500") },
		  .port = "eth0",
		  .m.may_packet = true,
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_OK },
		{ "none",
		  { ETH("mtu", "1500") },
		  .port = "eth0",
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_MISSING,
		  .mend = "--netdev eth0" },
		{ "none, and an engine",
		  { ETH("mtu", "1500") },
		  .port = "eth0",
		  .verdict = CHECK_OK,
		  .text = "runs already" },
	};

	EXPECT(check_privileges, rows);
}

Test(doctor_port, link)
{
	static const struct doctor_row rows[] = {
		{ "no port", .verdict = CHECK_NONE },
		{ "a device of DPDK's",
		  { DRIVER("vfio-pci") },
		  .port = NIC,
		  .verdict = CHECK_NONE },
		{ "up",
		  { ETH("flags", "0x1003"), ETH("carrier", "1"), ETH("speed", "25000") },
		  .port = "eth0",
		  .verdict = CHECK_OK,
		  .text = "25000 Mbit/s" },
		{ "no speed",
		  { ETH("flags", "0x1003"), ETH("carrier", "1"), ETH("speed", "-1") },
		  .port = "eth0",
		  .verdict = CHECK_OK,
		  .text = "eth0 is up" },
		{ "down",
		  { ETH("flags", "0x1002") },
		  .port = "eth0",
		  .verdict = CHECK_MISSING,
		  .mend = "ip link set eth0 up" },
		{ "no carrier",
		  { ETH("flags", "0x1003"), ETH("carrier", "0") },
		  .port = "eth0",
		  .verdict = CHECK_MISSING,
		  .text = "no carrier",
		  .mend = "ethtool eth0" },
		{ "of a shared device",
		  { DRIVER("mlx5_core"),
		    { DEVICES NIC "/net/eth0", NULL },
		    ETH("flags", "0x1002") },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .text = "eth0 is down" },
		{ "of a device that nobody has",
		  { DRIVER("vfio-pci"), GROUP },
		  .port = NIC,
		  .m.engine_pid = 7,
		  .verdict = CHECK_NONE },
		{ "of an engine's device, up",
		  { DRIVER("vfio-pci"), GROUP, HOLDER },
		  .port = NIC,
		  .m = { .engine_pid = 7, .engine_active = true },
		  .verdict = CHECK_OK,
		  .text = NIC " is up" },
		{ "of an engine's device, down",
		  { DRIVER("vfio-pci"), GROUP, HOLDER },
		  .port = NIC,
		  .m.engine_pid = 7,
		  .verdict = CHECK_MISSING,
		  .text = NIC " has no link",
		  .mend = "cable" },
		{ "of another engine's device",
		  { DRIVER("vfio-pci"), GROUP, HOLDER },
		  .port = NIC,
		  .m.engine_pid = 8,
		  .verdict = CHECK_NONE },
	};

	EXPECT(check_link, rows);
}

Test(doctor_port, mtu)
{
	static const struct doctor_row rows[] = {
		{ "no port", .verdict = CHECK_NONE },
		{ "Ethernet's",
		  { ETH("mtu", "1500") },
		  .port = "eth0",
		  .verdict = CHECK_SLOW,
		  .text = "1500: IB MTU 1024",
		  .mend = "ip link set eth0 mtu 4200" },
		{ "one too small",
		  { ETH("mtu", "4175") },
		  .port = "eth0",
		  .verdict = CHECK_SLOW,
		  .text = "IB MTU 2048" },
		{ "large enough",
		  { ETH("mtu", "4176") },
		  .port = "eth0",
		  .verdict = CHECK_OK,
		  .text = "IB MTU 4096" },
		{ "jumbo", { ETH("mtu", "9000") }, .port = "eth0", .verdict = CHECK_OK },
		{ "just enough for RoCE",
		  { ETH("mtu", "336") },
		  .port = "eth0",
		  .verdict = CHECK_SLOW,
		  .text = "IB MTU 256" },
		{ "too small for RoCE",
		  { ETH("mtu", "335") },
		  .port = "eth0",
		  .verdict = CHECK_MISSING,
		  .text = "needs 336" },
	};

	EXPECT(check_mtu, rows);
}

#define UDP_HEAD                                                                         \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   " \
	"uid  timeout inode ref pointer drops\n"
#define UDP_LINE(port, inode)                                                      \
	"  150: 00000000:" port " 00000000:0000 07 00000000:00000000 00:00000000 " \
	"00000000     0        0 " inode " 2 0000000000000000 0\n"

Test(doctor_port, udp_port)
{
	static const struct doctor_row rows[] = {
		{ "free",
		  { ETH("mtu", "1500"), { "proc/net/udp", UDP_HEAD UDP_LINE("0035", "77") } },
		  .port = "eth0",
		  .verdict = CHECK_OK,
		  .text = "UDP port 4791 is free" },
		{ "rxe",
		  { ETH("mtu", "1500"),
		    { "sys/class/infiniband/rxe0/parent", "eth0\n" },
		    { "proc/net/udp", UDP_HEAD UDP_LINE("12B7", "0") } },
		  .port = "eth0",
		  .verdict = CHECK_MISSING,
		  .text = "rdma_rxe has eth0 as rxe0",
		  .mend = "rdma link delete rxe0" },
		{ "rxe of another interface",
		  { ETH("mtu", "1500"),
		    { "sys/class/infiniband/rxe0/parent", "eth1\n" },
		    { "proc/net/udp", UDP_HEAD UDP_LINE("12B7", "0") } },
		  .port = "eth0",
		  .verdict = CHECK_OK },
		{ "hardware",
		  { ETH("mtu", "1500"), { "sys/class/infiniband/mlx5_0/node_type", "1: CA\n" } },
		  .port = "eth0",
		  .verdict = CHECK_OK },
		{ "an engine",
		  { ETH("mtu", "1500"),
		    { "proc/net/udp", UDP_HEAD UDP_LINE("12B7", "4711") },
		    { "proc/31/fd/5", "->socket:[4711]" },
		    { "proc/31/comm", "uroced\n" } },
		  .port = "eth0",
		  .verdict = CHECK_OK,
		  .text = "an engine (process 31)" },
		{ "another program",
		  { ETH("mtu", "1500"),
		    { "proc/net/udp6", UDP_HEAD UDP_LINE("12B7", "4711") },
		    { "proc/9/fd/5", "->socket:[471]" },
		    { "proc/31/fd/5", "->socket:[4711]" },
		    { "proc/31/comm", "listener\n" } },
		  .port = "eth0",
		  .verdict = CHECK_SLOW,
		  .text = "listener (process 31)",
		  .mend = "kill 31" },
		{ "nobody that we may look at",
		  { ETH("mtu", "1500"), { "proc/net/udp", UDP_HEAD UDP_LINE("12B7", "4711") } },
		  .port = "eth0",
		  .verdict = CHECK_OK,
		  .text = "another user" },
		{ "no table", { ETH("mtu", "1500") }, .port = "eth0", .verdict = CHECK_OK },
	};

	EXPECT(check_udp_port, rows);
}

Test(doctor_port, tun)
{
	static const struct doctor_row rows[] = {
		{ "an interface", { ETH("mtu", "1500") }, .port = "eth0", .verdict = CHECK_NONE },
		{ "there",
		  { { "dev/net/tun", "" }, NIC_ON("0") },
		  .port = NIC,
		  .verdict = CHECK_OK },
		{ "not there",
		  { NIC_ON("0") },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .text = "--kernel-interface is refused",
		  .mend = "modprobe tun" },
		{ "not needed", .verdict = CHECK_OK, .text = "only --kernel-interface needs it" },
	};

	EXPECT(check_tun, rows);
}

Test(doctor_port, ptrace)
{
	static const char yama[] = "proc/sys/kernel/yama/ptrace_scope";
	const struct doctor_row rows[] = {
		{ "no Yama", .verdict = CHECK_OK },
		{ "off", { { yama, "0\n" } }, .verdict = CHECK_OK },
		{ "on",
		  { { yama, "1\n" } },
		  .verdict = CHECK_SLOW,
		  .text = "ptrace_scope 1",
		  .mend = "sysctl -w kernel.yama.ptrace_scope=0" },
		{ "on, root", { { yama, "1\n" } }, .m.root_user = true, .verdict = CHECK_OK },
		{ "root only", { { yama, "2\n" } }, .m.root_user = true, .verdict = CHECK_OK },
		{ "nobody",
		  { { yama, "3\n" } },
		  .m.root_user = true,
		  .verdict = CHECK_SLOW,
		  .mend = "reboot" },
	};

	EXPECT(check_ptrace, rows);
}
