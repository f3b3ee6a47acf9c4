/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroced's messages about a PCI device that EAL did not take, from folders that look like the
 * kernel's.
 */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/ethdev/ethdev.h"

#define DEVICE "0000:03:00.0"

static char folder[] = "/tmp/missing_test_XXXXXX";
static char why[256];

static void make(const char *name, const char *link)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (link == NULL)
		cr_assert_eq(mkdir(path, 0700), 0, "%s", path);
	else
		cr_assert_eq(symlink(link, path), 0, "%s", path);
}

static void begin(void)
{
	cr_assert_not_null(mkdtemp(folder));
	make("vfio", NULL);
}

static void end(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(missing, .init = begin, .fini = end, .timeout = 30);

static bool ask(const char *name)
{
	char vfio[PATH_MAX];

	snprintf(vfio, sizeof(vfio), "%s/vfio", folder);
	why[0] = '\0';
	return ethdev_why_missing_at(folder, vfio, name, why, sizeof(why));
}

static void says(const char *name, const char *text)
{
	cr_expect(ask(name));
	cr_expect_not_null(strstr(why, text), "it says: %s", why);
	cr_expect_null(strchr(why, '\n'));
}

Test(missing, other_names_are_not_its_business)
{
	cr_expect_not(ask("net_memif0"));
	cr_expect_not(ask(""));
}

Test(missing, a_device_that_is_not_there)
{
	says(DEVICE, DEVICE ": there is no such PCI device");
}

Test(missing, a_device_without_driver)
{
	make(DEVICE, NULL);
	says(DEVICE, "has no driver: modprobe vfio-pci; dpdk-devbind.py -b vfio-pci " DEVICE);
	says("03:00.0", DEVICE);
}

Test(missing, a_device_of_the_kernel)
{
	make(DEVICE, NULL);
	make(DEVICE "/driver", "../../drivers/ixgbe");
	says(DEVICE, "is bound to the kernel's driver ixgbe: ");
	says(DEVICE, "dpdk-devbind.py -b vfio-pci " DEVICE);
}

Test(missing, a_device_without_iommu)
{
	make(DEVICE, NULL);
	make(DEVICE "/driver", "../../drivers/vfio-pci");
	says(DEVICE, "has no IOMMU: ");
}

static void in_a_group(void)
{
	make(DEVICE, NULL);
	make(DEVICE "/driver", "../../drivers/vfio-pci");
	make(DEVICE "/iommu_group", "../../../kernel/iommu_groups/7");
}

Test(missing, a_group_that_cannot_be_opened)
{
	in_a_group();
	says(DEVICE, "/dev/vfio/7: No such file or directory");
}

Test(missing, a_device_that_only_dpdk_does_not_know)
{
	in_a_group();
	make("vfio/7", "/dev/null");
	says(DEVICE, "DPDK did not take it: ");
}

Test(missing, a_device_that_uio_has)
{
	make(DEVICE, NULL);
	make(DEVICE "/driver", "../../drivers/uio_pci_generic");
	says(DEVICE, "DPDK did not take it from uio_pci_generic: is it in use?");
}
