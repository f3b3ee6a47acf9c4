/* SPDX-License-Identifier: BSD-3-Clause */
/* A PCI device that DPDK is to drive: IOMMU, VFIO, its driver, its group, its slot. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "holder.h"
#include "tree.h"

#define DEVICE "/sys/bus/pci/devices/%s"

static const struct {
	const char *name;
	enum bound_to bound;
} drivers[] = {
	{ "vfio-pci", BOUND_VFIO },    { "uio_pci_generic", BOUND_UIO }, { "igb_uio", BOUND_UIO },
	{ "mlx4_core", BOUND_SHARED }, { "mlx5_core", BOUND_SHARED },
};

enum bound_to device_bound_to(const struct machine *m, char *driver, size_t size)
{
	if (!tree_link(m, driver, size, DEVICE "/driver", m->pci))
		return BOUND_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
		if (strcmp(driver, drivers[i].name) == 0)
			return drivers[i].bound;
	return BOUND_KERNEL;
}

bool vfio_is_unsafe(const struct machine *m)
{
	char text[8];

	return tree_line(m, text, sizeof(text),
			 "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode") &&
	       text[0] == 'Y';
}

/* ---- IOMMU ---- */

/* A group of vfio's own, for a device without an IOMMU, does not count. */
static bool iommu_group(const struct machine *m, const char *pci, char *group, size_t size)
{
	char name[64];

	if (!tree_link(m, group, size, DEVICE "/iommu_group", pci))
		return false;
	return !tree_line(m, name, sizeof(name), "/sys/kernel/iommu_groups/%s/name", group) ||
	       strcmp(name, "vfio-noiommu") != 0;
}

static bool has_iommu(const struct machine *m)
{
	DIR *groups = tree_folder(m, "/sys/kernel/iommu_groups");
	bool any = tree_next(groups) != NULL;

	if (groups != NULL)
		closedir(groups);
	return any;
}

static bool cpuinfo_has(const struct machine *m, const char *word)
{
	FILE *f = tree_file(m, "/proc/cpuinfo");
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	while (f != NULL && !found && getline(&line, &size, f) >= 0)
		found = strstr(line, word) != NULL;
	free(line);
	if (f != NULL)
		fclose(f);
	return found;
}

static void mend_iommu(const struct machine *m, struct finding *f)
{
	if (tree_has(m, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode") &&
	    cpuinfo_has(m, " hypervisor"))
		finding_mend(f, "give this guest an IOMMU, or, unsafe: echo 1 > "
				"/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
	else if (cpuinfo_has(m, " hypervisor"))
		finding_mend(f, "give this guest an IOMMU (QEMU: -device intel-iommu)");
	else if (cpuinfo_has(m, "GenuineIntel"))
		finding_mend(f,
			     "switch VT-d on in the firmware, add intel_iommu=on iommu=pt to the "
			     "kernel's command line, reboot");
	else
		finding_mend(f, "switch the IOMMU on in the firmware, add iommu=pt to the kernel's "
				"command line, reboot");
}

void check_iommu(const struct machine *m, struct finding *f)
{
	enum bound_to bound;
	char text[64];

	if (m->kind == PORT_NETDEV)
		return;
	if (m->kind == PORT_NONE) {
		finding_set(f, CHECK_OK, "%s",
			    has_iommu(m) ? "there is one" : "none; only DPDK's ports need one");
		return;
	}
	bound = device_bound_to(m, text, sizeof(text));
	if (bound == BOUND_SHARED)
		finding_set(f, CHECK_OK, "the kernel's driver %s has the device", text);
	else if (iommu_group(m, m->pci, text, sizeof(text)))
		finding_set(f, CHECK_OK, "%s is in group %s", m->pci, text);
	else if (bound == BOUND_UIO)
		finding_set(f, CHECK_SLOW, "none: the device may write to all memory");
	else if (vfio_is_unsafe(m))
		finding_set(f, CHECK_SLOW,
			    "none, and VFIO works without one: the device may write to all memory");
	else
		finding_set(f, CHECK_MISSING, "none for %s, so VFIO refuses it", m->pci);
	if (f->verdict != CHECK_OK)
		mend_iommu(m, f);
}

void check_vfio(const struct machine *m, struct finding *f)
{
	enum bound_to bound;
	char driver[64];

	if (m->kind != PORT_PCI)
		return;
	bound = device_bound_to(m, driver, sizeof(driver));
	if (bound == BOUND_UIO || bound == BOUND_SHARED)
		return;
	if (tree_has(m, "/sys/bus/pci/drivers/vfio-pci")) {
		finding_set(f, CHECK_OK, "vfio-pci is loaded%s",
			    vfio_is_unsafe(m) ? ", its mode without an IOMMU is on" : "");
		return;
	}
	finding_set(f, CHECK_MISSING, "the module vfio-pci is not loaded");
	finding_mend(f, "modprobe vfio-pci");
}

/* ---- the driver ---- */

void check_driver(const struct machine *m, struct finding *f)
{
	enum bound_to bound;
	char driver[64];

	if (m->kind != PORT_PCI)
		return;
	bound = device_bound_to(m, driver, sizeof(driver));
	if (bound == BOUND_VFIO || bound == BOUND_SHARED)
		finding_set(f, CHECK_OK, "%s", driver);
	else if (bound == BOUND_UIO)
		finding_set(f, CHECK_SLOW, "%s: without an IOMMU, and mostly without interrupts",
			    driver);
	else if (bound == BOUND_NONE)
		finding_set(f, CHECK_MISSING, "%s is bound to no driver", m->pci);
	else if (m->iface[0] != '\0')
		finding_set(f, CHECK_MISSING,
			    "%s is bound to %s: the kernel uses it as %s, and would lose that",
			    m->pci, driver, m->iface);
	else
		finding_set(f, CHECK_MISSING, "%s is bound to the kernel's driver %s", m->pci,
			    driver);
	if (f->verdict != CHECK_OK)
		finding_mend(f, "dpdk-devbind.py -b vfio-pci %s", m->pci);
}

/* ---- its group ---- */

/*
 * If a driver of the kernel has one member of the group, VFIO can use none of them. Bridges (class
 * 06) do not matter.
 */
static bool group_is_shared(const struct machine *m, const char *group, char *other, size_t size,
			    char *driver, size_t driver_size)
{
	DIR *members = tree_folder(m, "/sys/kernel/iommu_groups/%s/devices", group);
	struct machine neighbour = *m;
	const char *name;
	int64_t class;
	bool found = false;

	while (!found && (name = tree_next(members)) != NULL) {
		snprintf(neighbour.pci, sizeof(neighbour.pci), "%.15s", name);
		tree_number(m, &class, DEVICE "/class", neighbour.pci);
		found = class >> 16 != 6 &&
			device_bound_to(&neighbour, driver, driver_size) == BOUND_KERNEL &&
			strcmp(driver, "pci-stub") != 0;
		snprintf(other, size, "%s", neighbour.pci);
	}
	if (members != NULL)
		closedir(members);
	return found;
}

static void look_at_holder(const struct machine *m, const char *node, struct finding *f)
{
	struct holder h;

	if (!holder_of_file(m, node, &h)) {
		finding_set(f, CHECK_MISSING, "another process uses %s", node);
		finding_mend(f, "fuser -v %s", node);
	} else if (strcmp(h.program, "uroced") == 0) {
		finding_set(f, CHECK_OK, "an engine (process %d) uses %s", h.pid, node);
	} else {
		finding_set(f, CHECK_MISSING, "%s (process %d) uses %s", h.program, h.pid, node);
		finding_mend(f, "kill %d", h.pid);
	}
}

/* A group can be opened by one process at a time. */
static void open_group(const struct machine *m, const char *node, struct finding *f)
{
	char path[PATH_MAX];
	int fd;

	tree_path(m, path, sizeof(path), "%s", node);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		finding_set(f, CHECK_OK, "%s can be opened", node);
	} else if (errno == EBUSY) {
		look_at_holder(m, node, f);
	} else if (errno == EACCES || errno == EPERM) {
		finding_set(f, CHECK_MISSING, "this user may not open %s", node);
		finding_mend(f, "chown %u %s (as root), or run the engine as root",
			     (unsigned int)geteuid(), node);
	} else {
		finding_set(f, CHECK_MISSING, "%s: %s", node, strerror(errno));
		finding_mend(f, "dpdk-devbind.py -b vfio-pci %s", m->pci);
	}
}

static bool group_node(const struct machine *m, char *node, size_t size)
{
	char group[32], name[32];

	if (!tree_link(m, group, sizeof(group), DEVICE "/iommu_group", m->pci))
		return false;
	snprintf(node, size, "/dev/vfio/%s%s",
		 iommu_group(m, m->pci, name, sizeof(name)) ? "" : "noiommu-", group);
	return true;
}

bool device_is_of_engine(const struct machine *m)
{
	struct holder h;
	char node[64];

	return m->kind == PORT_PCI && m->engine_error == 0 && m->engine_pid > 0 &&
	       group_node(m, node, sizeof(node)) && holder_of_file(m, node, &h) &&
	       h.pid == m->engine_pid;
}

void check_group(const struct machine *m, struct finding *f)
{
	char driver[64], group[32], other[16] = "", node[64];

	if (m->kind != PORT_PCI || device_bound_to(m, driver, sizeof(driver)) != BOUND_VFIO)
		return;
	if (!tree_link(m, group, sizeof(group), DEVICE "/iommu_group", m->pci))
		return; /* another check says so */
	if (group_is_shared(m, group, other, sizeof(other), driver, sizeof(driver))) {
		finding_set(f, CHECK_MISSING, "group %s has %s, too, which %s drives", group, other,
			    driver);
		finding_mend(f, "dpdk-devbind.py -b vfio-pci %s", other);
		return;
	}
	if (group_node(m, node, sizeof(node)))
		open_group(m, node, f);
}

/* ---- its slot ---- */

void check_pcie(const struct machine *m, struct finding *f)
{
	int64_t width, widest;
	double rate, fastest;
	char text[2][64];

	if (m->pci[0] == '\0' ||
	    !tree_line(m, text[0], sizeof(text[0]), DEVICE "/current_link_speed", m->pci) ||
	    !tree_line(m, text[1], sizeof(text[1]), DEVICE "/max_link_speed", m->pci) ||
	    !tree_number(m, &width, DEVICE "/current_link_width", m->pci) ||
	    !tree_number(m, &widest, DEVICE "/max_link_width", m->pci))
		return; /* no PCI Express */
	rate = strtod(text[0], NULL);
	fastest = strtod(text[1], NULL);
	if (rate <= 0 || fastest <= 0 || width <= 0 || widest > 32)
		return; /* an emulated device: "Unknown", width 255 */
	finding_set(f, rate < fastest || width < widest ? CHECK_SLOW : CHECK_OK,
		    "%s has %d lanes of %g GT/s, of %d of %g", m->pci, (int)width, rate,
		    (int)widest, fastest);
	if (f->verdict == CHECK_SLOW)
		finding_mend(f, "put the card into a slot that has them");
}
