/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: hugepages and locked memory, on machines made of files. */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/bits.h"
#include "doctor_tree.h"

TestSuite(doctor_memory, .timeout = 60);

#define PAGES(node, size, all, free)                                                 \
	{ NODES node "/hugepages/hugepages-" size "/nr_hugepages", all "\n" },       \
	{                                                                            \
		NODES node "/hugepages/hugepages-" size "/free_hugepages", free "\n" \
	}
Test(doctor_memory, hugepages)
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
		  { PAGES("node0", "2048kB", "512", "31") },
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_MISSING,
		  .text = "256 MiB at MTU 4200 (node 0: 31 of 512 of 2 MiB free)",
		  .mend = "nr_hugepages=512" },
		{ "enough for a small MTU",
		  { PAGES("node0", "2048kB", "512", "32") },
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_SLOW,
		  .text = "256 MiB at MTU 4200 (node 0: 32 of 512",
		  .mend = "nr_hugepages=512" },
		{ "one too few for a large one",
		  { PAGES("node0", "2048kB", "512", "127") },
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_SLOW,
		  .mend = "nr_hugepages=512" },
		{ "just enough",
		  { PAGES("node0", "2048kB", "512", "128") },
		  .m.engine_error = ENOENT,
		  .verdict = CHECK_OK },
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
		  .text = "too few on node 1, the port's node",
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

Test(doctor_memory, memory_lock)
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
		{ "enough for a small MTU",
		  { NIC_ON("-1") },
		  .port = NIC,
		  .m.memlock = 64 << 20,
		  .verdict = CHECK_SLOW,
		  .text = "65536 KiB",
		  .mend = "ulimit -l unlimited" },
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
