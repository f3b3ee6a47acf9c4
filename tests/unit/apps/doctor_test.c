/* SPDX-License-Identifier: BSD-3-Clause */
/* Each check of `uroce doctor` on machines made of files, and on this one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "cpus.h"
#include "doctor_tree.h"
#include "holder.h"

TestSuite(doctor, .timeout = 60);

#define NIC	"0000:03:00.0"
#define DEVICES "sys/bus/pci/devices/"
#define NODES	"sys/devices/system/node/"
#define CPU	"sys/devices/system/cpu/"
#define NO_IOMMU                                                               \
	{                                                                      \
		"sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n" \
	}

static void expect_rows(void (*check)(const struct machine *m, struct finding *f),
			const struct doctor_row *row, size_t rows)
{
	for (size_t i = 0; i < rows; i++)
		expect_finding(check, &row[i]);
}

#define EXPECT(check, rows) expect_rows(check, rows, ARRAY_SIZE(rows))

/* ---- memory ---- */

#define PAGES(node, size, all, free)                                                 \
	{ NODES node "/hugepages/hugepages-" size "/nr_hugepages", all "\n" },       \
	{                                                                            \
		NODES node "/hugepages/hugepages-" size "/free_hugepages", free "\n" \
	}
#define NIC_ON(node)                                \
	{                                           \
		DEVICES NIC "/numa_node", node "\n" \
	}

Test(doctor, hugepages)
{
	static const struct doctor_row rows[] = {
		{ "none",
		  { PAGES("node0", "2048kB", "0", "0") },
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_SLOW,
		  .text = "there are none, so an engine uses ordinary memory",
		  .mend = "sysctl -w vm.nr_hugepages=512" },
		{ "of both sizes",
		  { PAGES("node0", "2048kB", "512", "500"), PAGES("node0", "1048576kB", "2", "1") },
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_OK,
		  .text = "node 0: 500 of 512 of 2 MiB free, node 0: 1 of 2 of 1 GiB free" },
		{ "a kernel without NUMA",
		  { { "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "160\n" },
		    { "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "160\n" } },
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_OK,
		  .text = "160 of 160 of 2 MiB free" },
		{ "one too few",
		  { PAGES("node0", "2048kB", "512", "127") },
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_MISSING,
		  .text = "less than its 256 MiB (node 0: 127 of 512 of 2 MiB free)",
		  .mend = "nr_hugepages=512" },
		{ "too few, as the engine has them",
		  { PAGES("node0", "2048kB", "512", "0") },
		  .verdict = CHECK_OK,
		  .text = "0 of 512" },
		{ "all in use, by others",
		  { PAGES("node0", "2048kB", "512", "0") },
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_SLOW,
		  .text = "all are in use" },
		{ "on the other node",
		  { PAGES("node0", "2048kB", "512", "512"), PAGES("node1", "2048kB", "0", "0"),
		    NIC_ON("1") },
		  .port = NIC,
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_SLOW,
		  .text = "too few on node 1, which the port is on",
		  .mend = "node1/hugepages/hugepages-2048kB/nr_hugepages" },
		{ "on its node",
		  { PAGES("node0", "2048kB", "0", "0"), PAGES("node1", "1048576kB", "1", "1"),
		    NIC_ON("1") },
		  .port = NIC,
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_OK,
		  .text = "node 1: 1 of 1" },
		{ "none, behind uio",
		  { { DEVICES NIC "/driver", "->../../drivers/uio_pci_generic" } },
		  .port = NIC,
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_MISSING,
		  .text = "works with nothing else",
		  .mend = "nr_hugepages" },
		{ "none, vfio without an IOMMU",
		  { NO_IOMMU, { DEVICES NIC "/driver", "->../../drivers/vfio-pci" } },
		  .port = NIC,
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_MISSING,
		  .text = "without an IOMMU",
		  .mend = "nr_hugepages" },
		{ "none, vfio",
		  { { DEVICES NIC "/driver", "->../../drivers/vfio-pci" } },
		  .port = NIC,
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_SLOW,
		  .mend = "nr_hugepages" },
	};

	EXPECT(check_hugepages, rows);
}

Test(doctor, memory_lock)
{
	static const struct doctor_row rows[] = {
		{ "no device", .m.memlock = 0, .verdict = CHECK_NONE },
		{ "unlimited",
		  { NIC_ON("-1") },
		  .port = NIC,
		  .m.memlock = UINT64_MAX,
		  .verdict = CHECK_OK },
		{ "allowed anyway",
		  { NIC_ON("-1") },
		  .port = NIC,
		  .m.may_lock = true,
		  .verdict = CHECK_OK },
		{ "enough",
		  { NIC_ON("-1") },
		  .port = NIC,
		  .m.memlock = 256 << 20,
		  .verdict = CHECK_OK,
		  .text = "256 MiB" },
		{ "Debian's default",
		  { NIC_ON("-1") },
		  .port = NIC,
		  .m.memlock = 8 << 20,
		  .verdict = CHECK_MISSING,
		  .text = "8192 KiB",
		  .mend = "ulimit -l unlimited" },
	};

	EXPECT(check_memory_lock, rows);
}

/* ---- a device of DPDK's ---- */

#define DRIVER(name)                                                      \
	{                                                                 \
		DEVICES NIC "/driver", "->../../../bus/pci/drivers/" name \
	}
#define GROUP(n)                                                                \
	{                                                                       \
		DEVICES NIC "/iommu_group", "->../../../kernel/iommu_groups/" n \
	}
#define CPUINFO(text)                                        \
	{                                                    \
		"proc/cpuinfo", "processor\t: 0\n" text "\n" \
	}

Test(doctor, iommu)
{
	static const struct doctor_row rows[] = {
		{ "an interface",
		  { { "sys/class/net/eth0/mtu", "1500\n" } },
		  .port = "eth0",
		  .verdict = CHECK_NONE },
		{ "no port, none", .verdict = CHECK_OK, .text = "none; only" },
		{ "no port, one",
		  { { "sys/kernel/iommu_groups/0", NULL } },
		  .verdict = CHECK_OK,
		  .text = "there is one" },
		{ "in a group",
		  { DRIVER("vfio-pci"), GROUP("12") },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = NIC " is in group 12" },
		{ "none, Intel",
		  { DRIVER("e1000e"), CPUINFO("vendor_id\t: GenuineIntel") },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .text = "VFIO refuses it",
		  .mend = "intel_iommu=on iommu=pt" },
		{ "none, AMD",
		  { DRIVER("e1000e"), CPUINFO("vendor_id\t: AuthenticAMD") },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .mend = "switch the IOMMU on" },
		{ "none, a guest",
		  { DRIVER("virtio-pci"), CPUINFO("flags\t\t: fpu hypervisor sse") },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .mend = "-device intel-iommu" },
		{ "none, a guest whose VFIO could go without",
		  { DRIVER("virtio-pci"),
		    CPUINFO("flags\t\t: fpu hypervisor sse"),
		    { "sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n" } },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .mend = "enable_unsafe_noiommu_mode" },
		{ "none, and VFIO goes without",
		  { NO_IOMMU, DRIVER("vfio-pci") },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .text = "VFIO goes without" },
		{ "vfio's own group",
		  { NO_IOMMU,
		    DRIVER("vfio-pci"),
		    GROUP("0"),
		    { "sys/kernel/iommu_groups/0/name", "vfio-noiommu\n" } },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .text = "VFIO goes without" },
		{ "uio",
		  { DRIVER("igb_uio") },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .text = "may write to all memory" },
		{ "a driver beside DPDK",
		  { DRIVER("mlx5_core") },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "mlx5_core" },
	};

	EXPECT(check_iommu, rows);
}

Test(doctor, vfio)
{
	static const struct doctor_row rows[] = {
		{ "no device", .verdict = CHECK_NONE },
		{ "loaded",
		  { NIC_ON("0"), { "sys/bus/pci/drivers/vfio-pci", NULL } },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "vfio-pci is loaded" },
		{ "loaded, unsafe",
		  { NO_IOMMU, NIC_ON("0"), { "sys/bus/pci/drivers/vfio-pci", NULL } },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "without an IOMMU is on" },
		{ "not loaded",
		  { DRIVER("e1000e") },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .mend = "modprobe vfio-pci" },
		{ "not needed", { DRIVER("mlx5_core") }, .port = NIC, .verdict = CHECK_NONE },
		{ "not used", { DRIVER("uio_pci_generic") }, .port = NIC, .verdict = CHECK_NONE },
	};

	EXPECT(check_vfio, rows);
}

Test(doctor, driver)
{
	static const struct doctor_row rows[] = {
		{ "no device", .verdict = CHECK_NONE },
		{ "vfio", { DRIVER("vfio-pci") }, .port = NIC, .verdict = CHECK_OK },
		{ "its address without a domain",
		  { DRIVER("vfio-pci") },
		  .port = "03:00.0",
		  .verdict = CHECK_OK },
		{ "beside the kernel", { DRIVER("mlx5_core") }, .port = NIC, .verdict = CHECK_OK },
		{ "uio",
		  { DRIVER("igb_uio") },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .mend = "dpdk-devbind.py -b vfio-pci " NIC },
		{ "none",
		  { NIC_ON("0") },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .text = "bound to no driver",
		  .mend = "dpdk-devbind.py -b vfio-pci " NIC },
		{ "the kernel's",
		  { DRIVER("e1000e") },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .text = "the kernel's driver e1000e" },
		{ "in use by the kernel",
		  { DRIVER("e1000e"), { DEVICES NIC "/net/enp3s0", NULL } },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .text = "as enp3s0, and would lose that" },
		{ "virtio",
		  { DRIVER("virtio-pci"), { DEVICES NIC "/virtio2/net/eth0", NULL } },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .text = "as eth0" },
	};

	EXPECT(check_driver, rows);
}

#define MEMBER(n, address)                                                           \
	{                                                                            \
		"sys/kernel/iommu_groups/" n "/devices/" address, "->../../" address \
	}
#define OTHER "0000:03:00.1"

Test(doctor, group)
{
	static const struct doctor_row rows[] = {
		{ "no device", .verdict = CHECK_NONE },
		{ "another driver",
		  { DRIVER("e1000e"), GROUP("1") },
		  .port = NIC,
		  .verdict = CHECK_NONE },
		{ "no group", { DRIVER("vfio-pci") }, .port = NIC, .verdict = CHECK_NONE },
		{ "its own",
		  { DRIVER("vfio-pci"), GROUP("1"), MEMBER("1", NIC), { "dev/vfio/1", "" } },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "/dev/vfio/1 can be opened" },
		{ "no node",
		  { DRIVER("vfio-pci"), GROUP("1"), MEMBER("1", NIC) },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .text = "/dev/vfio/1: No such file",
		  .mend = "devbind" },
		{ "a neighbour that the kernel has",
		  { DRIVER("vfio-pci"),
		    GROUP("1"),
		    MEMBER("1", NIC),
		    MEMBER("1", OTHER),
		    { DEVICES OTHER "/class", "0x020000\n" },
		    { DEVICES OTHER "/driver", "->../e1000e" },
		    { "dev/vfio/1", "" } },
		  .port = NIC,
		  .verdict = CHECK_MISSING,
		  .text = "group 1 has " OTHER ", too",
		  .mend = "dpdk-devbind.py -b vfio-pci " OTHER },
		{ "a bridge as neighbour",
		  { DRIVER("vfio-pci"),
		    GROUP("1"),
		    MEMBER("1", NIC),
		    MEMBER("1", OTHER),
		    { DEVICES OTHER "/class", "0x060400\n" },
		    { DEVICES OTHER "/driver", "->../pcieport" },
		    { "dev/vfio/1", "" } },
		  .port = NIC,
		  .verdict = CHECK_OK },
		{ "a neighbour that nobody has",
		  { DRIVER("vfio-pci"),
		    GROUP("1"),
		    MEMBER("1", NIC),
		    MEMBER("1", OTHER),
		    { DEVICES OTHER "/class", "0x020000\n" },
		    { "dev/vfio/1", "" } },
		  .port = NIC,
		  .verdict = CHECK_OK },
		{ "without an IOMMU",
		  { NO_IOMMU,
		    DRIVER("vfio-pci"),
		    GROUP("0"),
		    { "sys/kernel/iommu_groups/0/name", "vfio-noiommu\n" },
		    { "dev/vfio/noiommu-0", "" } },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "/dev/vfio/noiommu-0" },
	};

	EXPECT(check_group, rows);
}

/* Root may open everything, so another user looks. */
Test(doctor, group_of_another_user)
{
	static const struct tree_file files[TREE_FILES] = { DRIVER("vfio-pci"),
							    GROUP("1"),
							    { "dev/vfio/1", "" } };
	struct machine m = { .root = tree_make(files) };
	struct finding f = { 0 };
	char path[128];

	snprintf(path, sizeof(path), "%s/dev/vfio/1", m.root);
	cr_assert_eq(chmod(path, geteuid() == 0 ? 0600 : 0), 0);
	cr_assert(machine_choose_port(&m, NIC));
	if (geteuid() == 0)
		cr_assert_eq(seteuid(65534), 0);
	check_group(&m, &f);
	if (getuid() == 0)
		cr_assert_eq(seteuid(0), 0);
	tree_remove();
	cr_expect_eq(f.verdict, CHECK_MISSING, "%s", f.text);
	cr_expect_str_eq(f.text, "this user may not open /dev/vfio/1");
	cr_expect_not_null(strstr(f.mend, "chown "), "%s", f.mend);
}

#define LINK(rate, fastest, width, widest)                         \
	{ DEVICES NIC "/current_link_speed", rate "\n" },          \
		{ DEVICES NIC "/max_link_speed", fastest "\n" },   \
		{ DEVICES NIC "/current_link_width", width "\n" }, \
	{                                                          \
		DEVICES NIC "/max_link_width", widest "\n"         \
	}

Test(doctor, pcie)
{
	static const struct doctor_row rows[] = {
		{ "no device", .verdict = CHECK_NONE },
		{ "not PCI Express", { NIC_ON("0") }, .port = NIC, .verdict = CHECK_NONE },
		{ "all it has",
		  { LINK("8.0 GT/s PCIe", "8.0 GT/s PCIe", "8", "8") },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "8 lanes of 8 GT/s" },
		{ "half of the lanes",
		  { LINK("8.0 GT/s PCIe", "8.0 GT/s PCIe", "4", "8") },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .text = "4 lanes of 8 GT/s, of 8 of 8" },
		{ "an old slot",
		  { LINK("2.5 GT/s PCIe", "8.0 GT/s PCIe", "8", "8") },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .text = "8 lanes of 2.5 GT/s",
		  .mend = "slot" },
		{ "an emulated one",
		  { LINK("Unknown", "Unknown", "0", "255") },
		  .port = NIC,
		  .verdict = CHECK_NONE },
	};

	EXPECT(check_pcie, rows);
}

/* ---- cores ---- */

Test(doctor, cpu)
{
	static const struct doctor_row rows[] = {
		{ "AVX-512",
		  { CPUINFO("flags\t\t: fpu pclmulqdq avx512f vpclmulqdq") },
		  .verdict = CHECK_OK,
		  .text = "AVX-512" },
		{ "without it",
		  { CPUINFO("flags\t\t: fpu pclmulqdq avx2") },
		  .verdict = CHECK_OK,
		  .text = "PCLMULQDQ for" },
		{ "half of it",
		  { CPUINFO("flags\t\t: pclmulqdq avx512f") },
		  .verdict = CHECK_OK,
		  .text = "PCLMULQDQ for" },
		{ "Arm",
		  { CPUINFO("Features\t: fp asimd pmull crc32") },
		  .verdict = CHECK_OK,
		  .text = "PMULL" },
		{ "QEMU's default",
		  { CPUINFO("flags\t\t: fpu sse sse2 notpclmulqdq") },
		  .verdict = CHECK_SLOW,
		  .text = "made by tables",
		  .mend = "-cpu host" },
		{ "no cpuinfo", .verdict = CHECK_SLOW },
	};

	EXPECT(check_cpu, rows);
}

Test(doctor, governor)
{
	static const struct doctor_row rows[] = {
		{ "none", .verdict = CHECK_OK, .text = "not the kernel's" },
		{ "performance",
		  { { CPU "cpufreq/policy0/scaling_governor", "performance\n" },
		    { CPU "cpufreq/policy1/scaling_governor", "performance\n" } },
		  .verdict = CHECK_OK,
		  .text = "performance" },
		{ "one that saves power",
		  { { CPU "cpufreq/policy0/scaling_governor", "performance\n" },
		    { CPU "cpufreq/policy1/scaling_governor", "schedutil\n" },
		    { CPU "cpufreq/boost", "1\n" } },
		  .verdict = CHECK_SLOW,
		  .text = "schedutil on 1 of 2",
		  .mend = "cpupower frequency-set -g performance" },
	};

	EXPECT(check_governor, rows);
}

#define STATE(n, state, us, off)                                    \
	{ CPU "cpu0/cpuidle/state" n "/name", state "\n" },         \
		{ CPU "cpu0/cpuidle/state" n "/latency", us "\n" }, \
	{                                                           \
		CPU "cpu0/cpuidle/state" n "/disable", off "\n"     \
	}

Test(doctor, idle_states)
{
	static const struct doctor_row rows[] = {
		{ "none", .verdict = CHECK_OK, .text = "not the kernel's" },
		{ "shallow",
		  { STATE("0", "POLL", "0", "0"), STATE("1", "C1E", "10", "0") },
		  .verdict = CHECK_OK,
		  .text = "C1E takes 10 us" },
		{ "deep",
		  { STATE("0", "POLL", "0", "0"), STATE("1", "C1", "2", "0"),
		    STATE("2", "C6", "133", "0") },
		  .verdict = CHECK_SLOW,
		  .text = "takes 133 us to leave C6",
		  .mend = "cpupower idle-set -D 10" },
		{ "deep, but switched off",
		  { STATE("0", "POLL", "0", "0"), STATE("1", "C1", "2", "0"),
		    STATE("2", "C6", "133", "1") },
		  .verdict = CHECK_OK,
		  .text = "C1 takes 2 us" },
	};

	EXPECT(check_idle_states, rows);
}

Test(doctor, isolated_cores)
{
	static const struct doctor_row rows[] = {
		{ "some",
		  { { CPU "isolated", "2-3\n" } },
		  .verdict = CHECK_OK,
		  .text = "cores 2-3" },
		{ "none",
		  { { CPU "isolated", "\n" }, { CPU "online", "0-7\n" } },
		  .verdict = CHECK_SLOW,
		  .text = "other threads",
		  .mend = "add isolcpus=6-7 to" },
		{ "none, near the port",
		  { { CPU "isolated", "\n" },
		    { CPU "online", "0-7\n" },
		    NIC_ON("0"),
		    { NODES "node0/cpulist", "0-3\n" } },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .mend = "add isolcpus=2-3 to" },
		{ "too few",
		  { { CPU "isolated", "\n" }, { CPU "online", "0-1\n" } },
		  .verdict = CHECK_SLOW,
		  .mend = "--idle adaptive" },
	};
	static const struct doctor_row ticks[] = {
		{ "some",
		  { { CPU "nohz_full", "2,4\n" } },
		  .verdict = CHECK_OK,
		  .text = "cores 2,4" },
		{ "none",
		  { { CPU "nohz_full", "(null)\n" }, { CPU "online", "0-7\n" } },
		  .verdict = CHECK_SLOW,
		  .text = "the timer",
		  .mend = "nohz_full=6-7 rcu_nocbs=6-7" },
		{ "a kernel without it",
		  { { CPU "online", "0-7\n" } },
		  .verdict = CHECK_SLOW,
		  .mend = "nohz_full=6-7" },
	};

	EXPECT(check_isolcpus, rows);
	EXPECT(check_nohz_full, ticks);
}

#define TWO_NODES                              \
	{ NODES "node0/cpulist", "0-3\n" },    \
	{                                      \
		NODES "node1/cpulist", "4-7\n" \
	}

Test(doctor, numa)
{
	static const struct doctor_row rows[] = {
		{ "no port", { TWO_NODES }, .verdict = CHECK_NONE },
		{ "one node",
		  { { NODES "node0/cpulist", "0-3\n" }, NIC_ON("0") },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "equally far" },
		{ "no answer",
		  { TWO_NODES, NIC_ON("-1") },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "does not say" },
		{ "nothing isolated",
		  { TWO_NODES, NIC_ON("1") },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "some of 4-7" },
		{ "isolated there",
		  { TWO_NODES, NIC_ON("1"), { CPU "isolated", "3,6-7\n" } },
		  .port = NIC,
		  .verdict = CHECK_OK,
		  .text = "some of 6-7" },
		{ "isolated elsewhere",
		  { TWO_NODES, NIC_ON("1"), { CPU "isolated", "2-3\n" } },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .text = "(2-3) are not",
		  .mend = "some of 4-7" },
		{ "an interface",
		  { TWO_NODES,
		    { CPU "isolated", "2-3\n" },
		    { "sys/class/net/eth0/device/numa_node", "1\n" } },
		  .port = "eth0",
		  .verdict = CHECK_SLOW,
		  .text = "node 1" },
	};

	EXPECT(check_numa, rows);
}

/* ---- an interface ---- */

#define ETH(file, text)                               \
	{                                             \
		"sys/class/net/eth0/" file, text "\n" \
	}

Test(doctor, privileges)
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

Test(doctor, link)
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
	};

	EXPECT(check_link, rows);
}

Test(doctor, mtu)
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

Test(doctor, udp_port)
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

Test(doctor, tun)
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

Test(doctor, ptrace)
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

/* ---- the engine ---- */

#define SOCKET "/run/uroce/uroced.sock"

Test(doctor, engine)
{
	static const struct doctor_row rows[] = {
		{ "serves",
		  .m = { .socket = SOCKET,
			 .engine = "uroce0 (10.7.0.1), IB MTU 1024",
			 .engine_pid = 7 },
		  .verdict = CHECK_OK, .text = "IB MTU 1024 at " SOCKET ", process 7" },
		{ "none", .m = { .socket = SOCKET, .engine_error = ENOENT }, .verdict = CHECK_OK,
		  .text = "none runs at " SOCKET },
		{ "a dead one",
		  { { "run/uroce/uroced.sock", "" } },
		  .m = { .socket = SOCKET, .engine_error = ECONNREFUSED },
		  .verdict = CHECK_OK,
		  .text = "left by a dead one" },
		{ "not allowed",
		  { { "run/uroce/uroced.sock", "" } },
		  .m = { .socket = SOCKET, .engine_error = EACCES },
		  .verdict = CHECK_MISSING,
		  .text = "may not attach to " SOCKET,
		  .mend = "--socket-group" },
		{ "hangs",
		  .m = { .socket = SOCKET,
			 .engine = "it did not answer",
			 .engine_error = ETIMEDOUT,
			 .engine_pid = 7 },
		  .verdict = CHECK_MISSING, .text = "it did not answer", .mend = "kill -9 7" },
		{ "of another version",
		  .m = { .socket = SOCKET, .engine = "protocol version 3", .engine_error = EPROTO },
		  .verdict = CHECK_MISSING, .text = "protocol version 3" },
	};

	EXPECT(check_engine, rows);
}

/* An engine that has the lock but no socket yet; the table of locks names it by the file's inode. */
Test(doctor, engine_that_holds_the_lock)
{
	static const struct tree_file files[TREE_FILES] = {
		{ "run/uroce/uroced.sock.lock", "31\n" }, { "proc/31/comm", "uroced\n" }
	};
	struct machine m = { .root = tree_make(files), .socket = SOCKET, .engine_error = ENOENT };
	struct finding f = { 0 };
	char path[128];
	struct stat st;
	FILE *locks;

	snprintf(path, sizeof(path), "%s/run/uroce/uroced.sock.lock", m.root);
	cr_assert_eq(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/proc/locks", m.root);
	locks = fopen(path, "we");
	cr_assert_not_null(locks);
	fprintf(locks, "1: POSIX  ADVISORY  WRITE 30 00:1a:%lu 0 EOF\n", (unsigned long)st.st_ino);
	fprintf(locks, "2: FLOCK  ADVISORY  WRITE 30 00:1a:%lu 0 EOF\n",
		(unsigned long)st.st_ino + 1);
	fprintf(locks, "3: FLOCK  ADVISORY  WRITE 31 00:1a:%lu 0 EOF\n", (unsigned long)st.st_ino);
	fclose(locks);
	check_engine(&m, &f);
	tree_remove();
	cr_expect_eq(f.verdict, CHECK_MISSING, "%s", f.text);
	cr_expect_not_null(strstr(f.text, "uroced (process 31) holds " SOCKET), "%s", f.text);
	cr_expect_not_null(strstr(f.mend, "kill 31"), "%s", f.mend);
}

/* ---- ports ---- */

Test(doctor, ports)
{
	static const struct tree_file files[TREE_FILES] = {
		{ "sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/mtu", "1500\n" },
		{ "sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/device",
		  "->../../../virtio2" },
		{ "sys/devices/pci0000:00/0000:00:03.0/numa_node", "1\n" },
		{ "sys/class/net/eth0",
		  "->../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0" },
		{ DEVICES "0000:00:03.0", "->../../../devices/pci0000:00/0000:00:03.0" },
		{ "sys/class/net/lo/mtu", "65536\n" },
	};
	static const struct {
		const char *name;
		enum port_kind kind;
		const char *iface, *pci;
		int32_t node;
	} rows[] = {
		{ "eth0", PORT_NETDEV, "eth0", "0000:00:03.0", 1 },
		{ "0000:00:03.0", PORT_PCI, "eth0", "0000:00:03.0", 1 },
		{ "00:03.0", PORT_PCI, "eth0", "0000:00:03.0", 1 },
		{ "lo", PORT_NETDEV, "lo", "", -1 },
	};
	static const char *const none[] = {
		"",  "eth1", "0000:00:04.0",  "00:03.00",	   "..",	".",
		"/", "lo/",  "0000:00:03.0:", "a-name-of-sixteen", "net_memif0"
	};
	const char *root = tree_make(files);
	struct machine m;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		m = (struct machine){ .root = root };
		cr_expect(machine_choose_port(&m, rows[i].name), "%s", rows[i].name);
		cr_expect_eq(m.kind, rows[i].kind, "%s", rows[i].name);
		cr_expect_str_eq(m.iface, rows[i].iface, "%s: %s", rows[i].name, m.iface);
		cr_expect_str_eq(m.pci, rows[i].pci, "%s: %s", rows[i].name, m.pci);
		cr_expect_eq(m.node, rows[i].node, "%s: %d", rows[i].name, m.node);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		m = (struct machine){ .root = root };
		cr_expect_not(machine_choose_port(&m, none[i]), "%s", none[i]);
	}
	tree_remove();
}

/* ---- this machine ---- */

/* Every check says something that fits, about no port and about an interface that all have. */
Test(doctor, of_this_machine)
{
	static const char *const port[] = { NULL, "lo" };

	for (size_t i = 0; i < ARRAY_SIZE(port); i++) {
		struct machine m = {
			.root = "", .node = -1, .engine_error = ENOENT, .socket = "/nowhere"
		};

		machine_read_process(&m);
		cr_expect_eq(m.root_user, geteuid() == 0);
		if (port[i] != NULL)
			cr_assert(machine_choose_port(&m, port[i]));
		for (const struct check *c = checks; c->name != NULL; c++) {
			struct finding f = { 0 };

			c->run(&m, &f);
			cr_expect_leq(f.verdict, CHECK_MISSING, "%s", c->name);
			cr_expect_eq(f.text[0] != '\0', f.verdict != CHECK_NONE, "%s", c->name);
			cr_expect_eq(f.mend[0] != '\0', f.verdict > CHECK_OK, "%s", c->name);
		}
	}
}

/* A root folder whose sys and proc are this machine's gives the same answers. */
Test(doctor, of_this_machine_below_a_folder)
{
	static const struct tree_file files[TREE_FILES] = { { "sys", "->/sys" },
							    { "proc", "->/proc" },
							    { "dev", "->/dev" } };
	struct machine here = {
		.root = "", .node = -1, .engine_error = ENOENT, .socket = "/nowhere"
	};
	struct machine below;

	cr_assert(machine_choose_port(&here, "lo"));
	below = here;
	below.root = tree_make(files);
	for (const struct check *c = checks; c->name != NULL; c++) {
		struct finding one = { 0 }, other = { 0 };

		c->run(&here, &one);
		c->run(&below, &other);
		cr_expect_eq(one.verdict, other.verdict, "%s", c->name);
		cr_expect_str_eq(one.mend, other.mend, "%s", c->name);
	}
	tree_remove();
}

/* The kernel's own files about this process, which holds a file and its lock. */
Test(doctor, holders)
{
	char path[] = "/tmp/uroce-doctor-held-XXXXXX";
	int fd = mkstemp(path);
	struct machine m = { .root = "" };
	struct holder h = { 0 };

	cr_assert_geq(fd, 0);
	cr_expect(holder_of_file(&m, path, &h));
	cr_expect_eq(h.pid, getpid());
	cr_expect_not(holder_of_lock(&m, path, &h));
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	h.pid = 0;
	cr_expect(holder_of_lock(&m, path, &h));
	cr_expect_eq(h.pid, getpid());
	cr_expect_str_not_empty(h.program);
	close(fd);
	unlink(path);
	cr_expect_not(holder_of_file(&m, path, &h));
	cr_expect_not(holder_of_lock(&m, path, &h));
}

/* ---- lists of cores ---- */

Test(doctor, lists_of_cpus)
{
	static const char *const same[] = { "", "0", "0-1", "1,3", "0-2,4,6-7", "1023" };
	static const char *const wrong[] = { "(null)", "1-", "-1", "1,", ",1", "1 2", "1024", "x" };
	char text[64];
	cpu_set_t set;

	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		cr_expect(cpus_read(same[i], &set), "%s", same[i]);
		cpus_write(&set, text, sizeof(text));
		cr_expect_str_eq(text, same[i], "%s", text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		cr_expect_not(cpus_read(wrong[i], &set), "%s", wrong[i]);
}
