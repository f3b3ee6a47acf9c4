/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why EAL has no port for a PCI device, according to the kernel. The questions come in the order in
 * which a user solves them: does the device exist? - does it have a driver that DPDK can use? - may
 * this process open it? - is it free?
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_pci.h>

#include "base/bits.h"
#include "drivers/ethdev/claim.h"
#include "drivers/ethdev/ethdev.h"

#define SYSFS "/sys/bus/pci/devices"

/* The last part of a link's target; "": there is no link. */
static void target(const char *path, char *name, size_t size)
{
	char text[PATH_MAX];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	snprintf(name, size, "%s", n > 0 ? basename(text) : "");
}

static void link_of(const char *sysfs, const char *device, const char *what, char *name,
		    size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", sysfs, device, what);
	target(path, name, size);
}

/* Drivers that leave the device to a process. */
static bool gives_it_away(const char *driver)
{
	static const char *const drivers[] = { "vfio-pci", "uio_pci_generic", "igb_uio" };

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
		if (strcmp(driver, drivers[i]) == 0)
			return true;
	return false;
}

static void wrong_driver(const char *device, const char *driver, char *why, size_t size)
{
	if (driver[0] == '\0')
		snprintf(why, size,
			 "%s has no driver: modprobe vfio-pci; dpdk-devbind.py -b vfio-pci %s",
			 device, device);
	else
		snprintf(why, size,
			 "%s is bound to the kernel's driver %s: modprobe vfio-pci; "
			 "dpdk-devbind.py -b vfio-pci %s (or share it with --netdev)",
			 device, driver, device);
}

/* Explains why vfio refused the group, which it gives to one process only. */
static void refused(const char *device, const char *group, int error, char *why, size_t size)
{
	char file[64];
	int pid;

	snprintf(file, sizeof(file), "/dev/vfio/%s", group);
	pid = error == EBUSY ? claim_holder_of(file) : 0;
	if (pid > 0)
		snprintf(why, size,
			 "%s is in use by process %d: stop that, or choose another device", device,
			 pid);
	else if (error == EBUSY)
		snprintf(why, size, "%s is in use by another process (fuser -v /dev/vfio/%s)",
			 device, group);
	else if (error == EACCES || error == EPERM)
		snprintf(why, size,
			 "%s: no access to /dev/vfio/%s: run as root, or chown it to this user",
			 device, group);
	else
		snprintf(why, size, "%s: /dev/vfio/%s: %s", device, group, strerror(error));
}

static void vfio_says(const char *vfio, const char *sysfs, const char *device, char *why,
		      size_t size)
{
	char group[32], path[PATH_MAX];
	int fd;

	link_of(sysfs, device, "iommu_group", group, sizeof(group));
	if (group[0] == '\0') {
		snprintf(why, size,
			 "%s has no IOMMU: switch it on in the firmware and boot with "
			 "intel_iommu=on or amd_iommu=on",
			 device);
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", vfio, group);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		refused(device, group, errno, why, size);
		return;
	}
	close(fd);
	snprintf(why, size,
		 "%s: DPDK did not take it: is it named with -a, and has DPDK a driver for it "
		 "(librte-net-*)?",
		 device);
}

bool ethdev_why_missing_at(const char *sysfs, const char *vfio, const char *name, char *why,
			   size_t size)
{
	char device[PCI_PRI_STR_SIZE], driver[64], path[PATH_MAX];
	struct rte_pci_addr address;

	if (rte_pci_addr_parse(name, &address) != 0)
		return false;
	rte_pci_device_name(&address, device, sizeof(device));
	snprintf(path, sizeof(path), "%s/%s", sysfs, device);
	if (access(path, F_OK) != 0) {
		snprintf(why, size, "%s: there is no such PCI device (see lspci -D)", device);
		return true;
	}
	link_of(sysfs, device, "driver", driver, sizeof(driver));
	if (!gives_it_away(driver))
		wrong_driver(device, driver, why, size);
	else if (strcmp(driver, "vfio-pci") == 0)
		vfio_says(vfio, sysfs, device, why, size);
	else
		snprintf(why, size, "%s: DPDK did not take it from %s: is it in use?", device,
			 driver);
	return true;
}

bool ethdev_why_missing(const char *name, char *why, size_t size)
{
	return ethdev_why_missing_at(SYSFS, "/dev/vfio", name, why, size);
}
