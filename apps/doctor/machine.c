/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's port, the rights of this process, and the list of all checks. */
#include <ctype.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tree.h"

const struct check checks[] = {
	{ "hugepages", check_hugepages },
	{ "memory-lock", check_memory_lock },
	{ "iommu", check_iommu },
	{ "vfio", check_vfio },
	{ "driver", check_driver },
	{ "group", check_group },
	{ "pcie", check_pcie },
	{ "cpu", check_cpu },
	{ "governor", check_governor },
	{ "c-states", check_idle_states },
	{ "isolcpus", check_isolcpus },
	{ "nohz_full", check_nohz_full },
	{ "numa", check_numa },
	{ "privileges", check_privileges },
	{ "link", check_link },
	{ "mtu", check_mtu },
	{ "udp-4791", check_udp_port },
	{ "tun", check_tun },
	{ "ptrace", check_ptrace },
	{ "engine", check_engine },
	{ NULL },
};

/* Users choose the names of processes: no control character of them may reach the terminal. */
static void make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if (iscntrl((unsigned char)*text))
			*text = '?';
}

void finding_set(struct finding *f, enum verdict_of_check verdict, const char *format, ...)
{
	va_list arguments;

	f->verdict = verdict;
	va_start(arguments, format);
	vsnprintf(f->text, sizeof(f->text), format, arguments);
	va_end(arguments);
	make_printable(f->text);
}

void finding_mend(struct finding *f, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(f->mend, sizeof(f->mend), format, arguments);
	va_end(arguments);
	make_printable(f->mend);
}

/* ---- the port ---- */

static void read_node(struct machine *m)
{
	int64_t node;
	bool known =
		m->pci[0] != '\0'
			? tree_number(m, &node, "/sys/bus/pci/devices/%s/numa_node", m->pci)
			: tree_number(m, &node, "/sys/class/net/%s/device/numa_node", m->iface);

	m->node = known && node >= 0 && node <= INT32_MAX ? (int32_t)node : -1;
}

/* "0000:03:00.0". */
static bool is_address(const char *text)
{
	static const char form[] = "xxxx:xx:xx.x";

	for (size_t i = 0; i < sizeof(form); i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != form[i])
			return false;
	return true;
}

/* The interface that a driver made of the device: its own, or one of a virtio device on it. */
static void read_iface_of_pci(struct machine *m)
{
	DIR *folder = tree_folder(m, "/sys/bus/pci/devices/%s/net", m->pci);
	const char *name = tree_next(folder);
	char child[32] = "";
	int32_t number;

	if (name != NULL)
		snprintf(m->iface, sizeof(m->iface), "%.15s", name);
	if (folder != NULL)
		closedir(folder);
	if (m->iface[0] != '\0')
		return;
	folder = tree_folder(m, "/sys/bus/pci/devices/%s", m->pci);
	while ((name = tree_next(folder)) != NULL)
		if (tree_numbered(name, "virtio", &number))
			snprintf(child, sizeof(child), "%.31s", name);
	if (folder != NULL)
		closedir(folder);
	if (child[0] == '\0')
		return;
	folder = tree_folder(m, "/sys/bus/pci/devices/%s/%s/net", m->pci, child);
	name = tree_next(folder);
	if (name != NULL)
		snprintf(m->iface, sizeof(m->iface), "%.15s", name);
	if (folder != NULL)
		closedir(folder);
}

/* The PCI device of an interface; a virtio device lies between both. */
static void read_pci_of_iface(struct machine *m)
{
	char name[64];
	int32_t number;

	if (tree_link(m, name, sizeof(name), "/sys/class/net/%s/device", m->iface) &&
	    tree_numbered(name, "virtio", &number)) {
		char path[PATH_MAX], real[PATH_MAX];
		char *slash;

		tree_path(m, path, sizeof(path), "/sys/class/net/%s/device", m->iface);
		slash = realpath(path, real) != NULL ? strrchr(real, '/') : NULL;
		if (slash == NULL)
			return;
		*slash = '\0';
		slash = strrchr(real, '/');
		snprintf(name, sizeof(name), "%.63s", slash != NULL ? slash + 1 : "");
	}
	if (is_address(name))
		snprintf(m->pci, sizeof(m->pci), "%.12s", name);
}

static bool is_plain_name(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < 16;
}

bool machine_choose_port(struct machine *m, const char *name)
{
	char full[32];

	snprintf(full, sizeof(full), "%s%.20s",
		 strchr(name, ':') == strrchr(name, ':') ? "0000:" : "", name);
	if (is_address(full) && tree_has(m, "/sys/bus/pci/devices/%s", full)) {
		m->kind = PORT_PCI;
		snprintf(m->pci, sizeof(m->pci), "%.12s", full);
		read_iface_of_pci(m);
	} else if (is_plain_name(name) && tree_has(m, "/sys/class/net/%s", name)) {
		m->kind = PORT_NETDEV;
		snprintf(m->iface, sizeof(m->iface), "%.15s", name);
		read_pci_of_iface(m);
	} else {
		return false;
	}
	read_node(m);
	return true;
}

/* ---- this process ---- */

static bool has_capability(const struct __user_cap_data_struct *data, uint32_t capability)
{
	return (data[capability / 32].effective >> capability % 32 & 1) != 0;
}

void machine_read_process(struct machine *m)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	struct rlimit r;

	m->memlock = 0;
	if (getrlimit(RLIMIT_MEMLOCK, &r) == 0)
		m->memlock = r.rlim_cur == RLIM_INFINITY ? UINT64_MAX : r.rlim_cur;
	m->root_user = geteuid() == 0;
	if (syscall(SYS_capget, &header, data) != 0)
		return;
	m->may_lock = has_capability(data, CAP_IPC_LOCK);
	m->may_packet = has_capability(data, CAP_NET_RAW) && has_capability(data, CAP_NET_ADMIN);
}
