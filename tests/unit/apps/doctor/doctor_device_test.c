/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: a PCI device for DPDK, on machines made of files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "doctor_tree.h"

TestSuite(doctor_device, .timeout = 60);

#define GROUP(n)                                                                \
	{                                                                       \
		DEVICES NIC "/iommu_group", "->../../../kernel/iommu_groups/" n \
	}

Test(doctor_device, iommu)
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
		{ "none, and VFIO works without one",
		  { NO_IOMMU, DRIVER("vfio-pci") },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .text = "VFIO works without one" },
		{ "vfio's own group",
		  { NO_IOMMU,
		    DRIVER("vfio-pci"),
		    GROUP("0"),
		    { "sys/kernel/iommu_groups/0/name", "vfio-noiommu\n" } },
		  .port = NIC,
		  .verdict = CHECK_SLOW,
		  .text = "VFIO works without one" },
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

Test(doctor_device, vfio)
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

Test(doctor_device, driver)
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
		  .text = "the kernel uses it as enp3s0, and would lose that" },
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

Test(doctor_device, group)
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
Test(doctor_device, group_of_another_user)
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

Test(doctor_device, pcie)
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
