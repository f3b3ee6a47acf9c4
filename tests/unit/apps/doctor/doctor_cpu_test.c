/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: the cores, on machines made of files. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "doctor_tree.h"

TestSuite(doctor_cpu, .timeout = 60);

Test(doctor_cpu, cpu)
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

Test(doctor_cpu, governor)
{
	static const struct doctor_row rows[] = {
		{ "none", .verdict = CHECK_OK, .text = "does not set the cores" },
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

Test(doctor_cpu, idle_states)
{
	static const struct doctor_row rows[] = {
		{ "none", .verdict = CHECK_OK, .text = "does not set how deep" },
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

Test(doctor_cpu, isolated_cores)
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

Test(doctor_cpu, numa)
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
