/* SPDX-License-Identifier: BSD-3-Clause */
/* The chosen port as the kernel sees it, and the settings that an engine needs for it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "holder.h"
#include "tree.h"

#define NET	     "/sys/class/net/%s"
#define IFF_UP	     1
#define HEADERS	     80u /* of a RoCEv2 packet over IPv6, at most, that the MTU has to carry, too */
#define IB_MTU_MOST  4096u
#define IB_MTU_LEAST 256u
#define UDP_PORT     4791u

/* Whether the kernel sees this port: an interface with which the engine works. */
static bool kernel_sees(const struct machine *m)
{
	char driver[64];

	return m->iface[0] != '\0' && (m->kind == PORT_NETDEV ||
				       device_bound_to(m, driver, sizeof(driver)) == BOUND_SHARED);
}

/* ---- rights ---- */

void check_privileges(const struct machine *m, struct finding *f)
{
	if (m->kind != PORT_NETDEV)
		return;
	if (m->may_packet)
		finding_set(f, CHECK_OK, "CAP_NET_RAW and CAP_NET_ADMIN");
	else if (m->engine_error == 0)
		finding_set(f, CHECK_OK, "none; the engine runs already");
	else {
		finding_set(f, CHECK_MISSING, "an engine on %s needs CAP_NET_RAW and CAP_NET_ADMIN",
			    m->iface);
		finding_mend(f, "sudo uroced --no-huge -- --netdev %s, or: systemctl start uroced",
			     m->iface);
	}
}

/* ---- link ---- */

/* Only the engine knows the link of a device that the kernel has given away. */
static void ask_engine(const struct machine *m, struct finding *f)
{
	if (!device_is_of_engine(m))
		return;
	if (m->engine_active) {
		finding_set(f, CHECK_OK, "%s is up", m->pci);
		return;
	}
	finding_set(f, CHECK_MISSING, "%s has no link", m->pci);
	finding_mend(f, "look at the cable and the other end");
}

void check_link(const struct machine *m, struct finding *f)
{
	int64_t flags, carrier, mbits;

	if (!kernel_sees(m)) {
		ask_engine(m, f);
		return;
	}
	if (!tree_number(m, &flags, NET "/flags", m->iface) || (flags & IFF_UP) == 0) {
		finding_set(f, CHECK_MISSING, "%s is down", m->iface);
		finding_mend(f, "ip link set %s up", m->iface);
	} else if (!tree_number(m, &carrier, NET "/carrier", m->iface) || carrier == 0) {
		finding_set(f, CHECK_MISSING, "%s has no carrier", m->iface);
		finding_mend(f, "look at the cable and the other end: ethtool %s", m->iface);
	} else if (tree_number(m, &mbits, NET "/speed", m->iface) && mbits > 0) {
		finding_set(f, CHECK_OK, "%s is up, %" PRId64 " Mbit/s", m->iface, mbits);
	} else {
		finding_set(f, CHECK_OK, "%s is up", m->iface);
	}
}

/* ---- MTU ---- */

static uint32_t ib_mtu_of(int64_t mtu)
{
	uint32_t ib = IB_MTU_MOST;

	while (ib >= IB_MTU_LEAST && ib + HEADERS > mtu)
		ib /= 2;
	return ib < IB_MTU_LEAST ? 0 : ib;
}

void check_mtu(const struct machine *m, struct finding *f)
{
	int64_t mtu;
	uint32_t ib;

	if (!kernel_sees(m) || !tree_number(m, &mtu, NET "/mtu", m->iface))
		return;
	ib = ib_mtu_of(mtu);
	if (ib == IB_MTU_MOST) {
		finding_set(f, CHECK_OK, "%" PRId64 ": IB MTU %u", mtu, ib);
		return;
	}
	if (ib == 0)
		finding_set(f, CHECK_MISSING, "%" PRId64 " is too small for RoCE, which needs %u",
			    mtu, IB_MTU_LEAST + HEADERS);
	else
		finding_set(f, CHECK_SLOW, "%" PRId64 ": IB MTU %u, where %u makes fewer packets",
			    mtu, ib, IB_MTU_MOST);
	finding_mend(f, "ip link set %s mtu 4200, also on every switch and peer", m->iface);
}

/* ---- UDP port 4791 ---- */

/* A device of rdma_rxe on this interface. */
static bool rxe_of(const struct machine *m, char *device, size_t size)
{
	DIR *devices = tree_folder(m, "/sys/class/infiniband");
	char parent[64];
	const char *name;
	bool found = false;

	while (!found && (name = tree_next(devices)) != NULL) {
		found = tree_line(m, parent, sizeof(parent), "/sys/class/infiniband/%s/parent",
				  name) &&
			strcmp(parent, m->iface) == 0;
		snprintf(device, size, "%s", name);
	}
	if (devices != NULL)
		closedir(devices);
	return found;
}

/* The inode of a socket of a program at the port; the kernel's have 0. */
static bool socket_at_port(const struct machine *m, const char *table, uint64_t *inode)
{
	FILE *f = tree_file(m, "%s", table);
	char line[256];
	uint32_t port;
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = sscanf(line,
			       " %*u: %*[0-9A-F]:%" SCNx32 " %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
			       &port, inode) == 2 &&
			port == UDP_PORT && *inode != 0;
	if (f != NULL)
		fclose(f);
	return found;
}

static void look_at_socket(const struct machine *m, uint64_t inode, struct finding *f)
{
	char file[48];
	struct holder h;

	snprintf(file, sizeof(file), "socket:[%" PRIu64 "]", inode);
	if (!holder_of_file(m, file, &h)) {
		finding_set(f, CHECK_OK, "a socket of another user has it, normally an engine's");
	} else if (strcmp(h.program, "uroced") == 0) {
		finding_set(f, CHECK_OK, "an engine (process %d) has it", h.pid);
	} else {
		finding_set(f, CHECK_SLOW, "%s (process %d) has it, and gets a copy of each packet",
			    h.program, h.pid);
		finding_mend(f, "kill %d", h.pid);
	}
}

void check_udp_port(const struct machine *m, struct finding *f)
{
	char device[64] = "";
	uint64_t inode;

	if (m->kind == PORT_NETDEV && rxe_of(m, device, sizeof(device))) {
		finding_set(f, CHECK_MISSING, "rdma_rxe has %s as %s: both would answer its peers",
			    m->iface, device);
		finding_mend(f, "rdma link delete %s", device);
	} else if (socket_at_port(m, "/proc/net/udp", &inode) ||
		   socket_at_port(m, "/proc/net/udp6", &inode)) {
		look_at_socket(m, inode, f);
	} else {
		finding_set(f, CHECK_OK, "UDP port %u is free", UDP_PORT);
	}
}

/* ---- what the kernel provides ---- */

void check_tun(const struct machine *m, struct finding *f)
{
	if (m->kind == PORT_NETDEV)
		return;
	if (tree_has(m, "/dev/net/tun"))
		finding_set(f, CHECK_OK, "/dev/net/tun exists");
	else if (m->kind == PORT_NONE)
		finding_set(f, CHECK_OK, "no /dev/net/tun; only --kernel-interface needs it");
	else {
		finding_set(f, CHECK_SLOW, "no /dev/net/tun, so --kernel-interface is refused");
		finding_mend(f, "modprobe tun");
	}
}

/* Yama: 1: own children only; 2: root only; 3: nobody. */
void check_ptrace(const struct machine *m, struct finding *f)
{
	int64_t scope;

	if (!tree_number(m, &scope, "/proc/sys/kernel/yama/ptrace_scope") || scope == 0 ||
	    (scope < 3 && m->root_user)) {
		finding_set(f, CHECK_OK, "an engine of this user may open its programs' memory");
		return;
	}
	finding_set(f, CHECK_SLOW,
		    "ptrace_scope %" PRId64
		    ": programs must pass their memory themselves; one that "
		    "changed its user cannot",
		    scope);
	if (scope == 3)
		finding_mend(f, "kernel.yama.ptrace_scope=0 in /etc/sysctl.d, reboot");
	else
		finding_mend(f, "sysctl -w kernel.yama.ptrace_scope=0, or an engine of root's");
}
