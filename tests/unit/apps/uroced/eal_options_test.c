/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of EAL's options that are refused before EAL sees them, and the messages. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "uroced_eal_options.h"

TestSuite(eal_options, .timeout = 20);

/* Words as a user gives them, after one that uroced adds. */
static struct eal_arguments as_given(const char *const *word)
{
	static char buffer[8][1200], added[] = "-m0";
	struct eal_arguments eal = { .argc = 2, .given = 2, .argv = { buffer[0], added } };

	for (int i = 0; i < 6 && word[i] != NULL; i++) {
		snprintf(buffer[i + 1], sizeof(buffer[0]), "%s", word[i]);
		eal.argv[eal.argc++] = buffer[i + 1];
	}
	return eal;
}

static int check(const char *const *word, char *why, size_t size)
{
	struct eal_arguments eal = as_given(word);

	why[0] = '\0';
	return eal_options_check(&eal, why, size);
}

static const struct {
	const char *word[6];
	const char *says; /* the line, or how it begins */
} wrong[] = {
	{ { "-m", "abc" }, "-m abc: must be MiB, in 1 .. 524288" },
	{ { "-m64x" }, "-m 64x: must be MiB" },
	{ { "-m", "-5" }, "-m -5: must be MiB" },
	{ { "-m", "0" }, "-m 0: " },
	{ { "-m", "524289" }, "-m 524289: " },
	{ { "-m", "99999999999999999999999" }, "-m 99999999999999999999999: " },
	{ { "-m", " 64" }, "-m  64: " },
	{ { "--no-huge", "-m", "64", "-m", "x" }, "-m x: " },
	{ { "nonsense", "-m", "x" }, "-m x: " },
	{ { "-vmx" }, "-m x: " },
	{ { "-n", "4x" }, "-n 4x: must be in 1 .. 32" },
	{ { "-n", "33" }, "-n 33: " },
	{ { "-r", "17" }, "-r 17: must be in 1 .. 16" },
	{ { "-l", "" }, "-l : must be a list of lcores, such as 0-2,5" },
	{ { "-l", "0," }, "-l 0,: " },
	{ { "-l", "0-" }, "-l 0-: " },
	{ { "-S", "x" }, "-S x: " },
	{ { "-c", "0xg" }, "-c 0xg: must be a hexadecimal mask of lcores, such as 0x3" },
	{ { "-s", "" }, "-s : " },
	{ { "--lcores", "0@" }, "--lcores 0@: must be lcores and their processors, " },
	{ { "--lcores=(0" }, "--lcores (0: " },
	{ { "--lcore=x" }, "--lcores x: " },
	{ { "--main-lcore=-1" }, "--main-lcore -1: must be an lcore" },
	{ { "--socket-mem=64,x" }, "--socket-mem 64,x: must be MiB of each NUMA node, " },
	{ { "--socket-limit", "-1" }, "--socket-limit -1: " },
	{ { "--file-prefix=a/b" },
	  "--file-prefix a/b: must be 1 to 64 characters without '/' and '%'" },
	{ { "--file-prefix=.." }, "--file-prefix ..: " },
	{ { "--file-prefix=" }, "--file-prefix : " },
	{ { "--file-prefix", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
	  "--file-prefix aaa" },
	{ { "-d", "" }, "-d : must be a library, or a folder of them" },
	{ { "--huge-dir=/tmp" }, "--huge-dir /tmp: must be a folder of a hugetlbfs" },
	{ { "--huge-dir", "/nonexistent" }, "--huge-dir /nonexistent: " },
	{ { "--huge-unlink=often" }, "--huge-unlink often: must be existing, always or never" },
	{ { "--vdev=" }, "--vdev : must be a driver with a number and its arguments, as in " },
	{ { "--vdev=net_memif0,role" },
	  "--vdev net_memif0,role: 'role' has no value, as in key=value" },
	{ { "--vdev", "net_af_packet0,iface=lo,qpairs" },
	  "--vdev net_af_packet0,iface=lo,qpairs: 'qpairs' has" },
	{ { "--vdev", "net_ring0,nodeaction" },
	  "--vdev net_ring0,nodeaction: 'nodeaction' has no" },
	{ { "--vdev=net_memif0,role=server,sokcet=/x" },
	  "--vdev net_memif0,role=server,sokcet=/x: 'sokcet' is not one of this driver's arguments: "
	  "id role bsize rsize socket socket-abstract owner-uid owner-gid mac zero-copy secret" },
	{ { "--vdev=net_null0,nonsense=1" },
	  "--vdev net_null0,nonsense=1: 'nonsense' is not one of this driver's arguments: size copy "
	  "no-rx" },
	{ { "--vdev=net_null0,size=abc" },
	  "--vdev net_null0,size=abc: 'size=abc': size must be a number" },
	{ { "--vdev=net_memif0,bsize=2k,role=server" },
	  "--vdev net_memif0,bsize=2k,role=server: 'bsize=2k': bsize must be a number" },
	{ { "--vdev=net_af_packet0,iface=lo,nope=1" },
	  "--vdev net_af_packet0,iface=lo,nope=1: 'nope' is not one of this driver's arguments: "
	  "iface qpairs " },
	{ { "--vdev=net_pcap0,iface=lo,infinite_rx=" },
	  "--vdev net_pcap0,iface=lo,infinite_rx=: 'infinite_rx=': infinite_rx must be a number" },
	{ { "--vdev=net_tap,ifce=x" }, "--vdev net_tap,ifce=x: 'ifce' is not " },
	{ { "-a", "99:99.9" }, "-a 99:99.9: must be a PCI device, such as 0000:03:00.0, or " },
	{ { "--allow=00:00" }, "--allow 00:00: " },
	{ { "-b", "00:20.0,x=y" }, "-b 00:20.0,x=y: " },
	{ { "--log-level=often" },
	  "--log-level often: must be LEVEL, PATTERN:LEVEL or EXPRESSION,LEVEL, with a level of "
	  "emergency, alert, critical, error, warning, notice, info, debug, or 1 .. 8" },
	{ { "--log-level", "lib.eal:" }, "--log-level lib.eal:: " },
	{ { "--log-level", "9" }, "--log-level 9: " },
	{ { "--log-level", "0" }, "--log-level 0: " },
	{ { "--log-level", "lib\\(,info" }, "--log-level lib\\(,info: " },
	{ { "--iova-mode=PA" }, "--iova-mode PA: must be pa or va" },
	{ { "--proc-type=secondary" },
	  "--proc-type secondary: must be primary or auto: an engine is" },
	{ { "--syslog=nosuch" }, "--syslog nosuch: must be a facility: auth, " },
	{ { "--vfio-intr=x" }, "--vfio-intr x: must be legacy, msi or msix" },
	{ { "--base-virtaddr=-1" }, "--base-virtaddr -1: must be an address" },
	{ { "--trace=\\(" }, "--trace \\(: must be a regular expression" },
	{ { "--trace-mode=x" }, "--trace-mode x: must be overwrite or discard" },
	{ { "--force-max-simd-bitwidth=100" }, "--force-max-simd-bitwidth 100: must be 0, 64, " },
};

Test(eal_options, what_is_refused)
{
	char why[512];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		int status = check(wrong[i].word, why, sizeof(why));

		cr_expect_eq(status, OPTIONS_USAGE, "%s %s", wrong[i].word[0], wrong[i].word[1]);
		cr_expect_eq(strncmp(why, wrong[i].says, strlen(wrong[i].says)), 0, "says: %s",
			     why);
	}
}

static const char *const right[][6] = {
	{ NULL },
	{ "-m", "1" },
	{ "-m524288" },
	{ "-n", "4", "-r", "2" },
	{ "-l", "0-2, 5" },
	{ "-c", "0xFf" },
	{ "-c", "3" },
	{ "-s", "0x1", "-S", "1,2" },
	{ "--lcores=0@(0-1)" },
	{ "--lcores", "1,2@(5-7),(3-5)@(0,2),(0,6),7-8" },
	{ "--main-lcore=0x1", "--main-lcore", "1" },
	{ "--socket-mem=512,0", "--socket-limit", "1024" },
	{ "--file-prefix=uroce-17" },
	{ "-d", "/usr/lib/dpdk" },
	{ "--huge-unlink", "--huge-unlink=never" },
	{ "--vdev=net_memif", "--vdev=net_memif0,role=client,,socket=/x,socket-abstract=no" },
	{ "--vdev", "net_pcap0,iface=lo", "--vdev", "net_tap12,iface=x,remote=y" },
	{ "--vdev=net_failsafe0,dev(00:03.0,x=y),dev(net_tap0,iface=z)",
	  "--vdev=net_tapx,foo=bar" },
	{ "--vdev=net_ring0,nodeaction=a:0:CREATE" },
	{ "-a", "0000:03:00.0,x=[0,1]", "-b", "3:0.1" },
	{ "--allow=00001234:03:1f.7", "-a", "auxiliary:mlx5_core.sf.2", "-a", "net_tap0" },
	{ "--log-level=8", "--log-level=lib.*:notice", "--log-level=*:err",
	  "--log-level=lib\\.[em].*,info" },
	{ "--log-level=help", "--log-level", "d" },
	{ "--iova-mode=va", "--proc-type", "primary", "--proc-type=auto" },
	{ "--syslog=local3", "--vfio-intr=msix", "--base-virtaddr=0x100000000" },
	{ "--trace=lib.eal.*", "--trace-mode=discard", "--trace-bufsz=2M", "--trace-dir=/tmp" },
	{ "--force-max-simd-bitwidth=512" },
	/*
	 * refused by EAL: no value, an option that is not known here, a word that is not an option
	 */
	{ "--no-such=x", "-Z", "x", "--vdev" },
	{ "--no-pci", "-m" },
};

Test(eal_options, what_is_left_to_eal)
{
	char why[512];

	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		cr_expect_eq(check(right[i], why, sizeof(why)), 0, "says: %s", why);
}

/* Every line ends properly, whatever was given. */
Test(eal_options, long_values)
{
	char value[1100], why[512];
	const char *word[] = { "-m", value, NULL };

	for (size_t n = 100; n < sizeof(value); n += 100) {
		memset(value, 'x', n);
		value[n] = '\0';
		cr_expect_eq(check(word, why, sizeof(why)), n < 1024 ? OPTIONS_USAGE : 0, "%zu", n);
		cr_expect_lt(strlen(why), 400);
	}
}

static const struct {
	const char *word[6];
	bool choose;
} devices[] = {
	{ { NULL }, false },
	{ { "--no-huge", "-m", "64", "--no-pci", "--log-level=8" }, false },
	{ { "-m", "64", "-a", "0000:03:00.0" }, true },
	{ { "-a0000:03:00.0" }, true },
	{ { "--allow=0000:03:00.0" }, true },
	{ { "--block", "0000:03:00.0" }, true },
	{ { "-b", "0000:03:00.0" }, true },
	{ { "--vdev=net_null0" }, false },
	{ { "--vdev", "net_memif12,role=server", "--vdev=net_impair0,port=net_memif12" }, false },
	{ { "--vdev=net_null0", "-a", "0000:03:00.0" }, true },
	{ { "--vdev=net_bonding0,slave=net_tap0" }, true },
	{ { "--vd", "net_bonding0" }, true }, /* EAL lets names be shortened */
	{ { "--vdev=net_null0", "--vdev=net_virtio_user0,path=/tmp/x" }, true },
	{ { "--vdev=net_null_a" }, true },
	{ { "-d", "libmine.so" }, true },
};

Test(eal_options, devices_and_libraries_need_drivers)
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		struct eal_arguments eal = as_given(devices[i].word);

		cr_expect_eq(eal_options_choose_drivers(&eal), devices[i].choose, "row %zu", i);
	}
}

Test(eal_options, the_driver_of_a_port_of_software_is_known)
{
	cr_expect_str_eq(eal_options_driver("net_null0"), "net_null");
	cr_expect_str_eq(eal_options_driver("net_tap1,iface=t"), "net_tap");
	cr_expect_str_eq(eal_options_driver("net_impair0"), "net_impair");
	cr_expect_null(eal_options_driver("0000:03:00.0"));
	cr_expect_null(eal_options_driver("net_bonding0"));
}
