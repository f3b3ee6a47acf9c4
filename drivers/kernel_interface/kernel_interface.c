/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/kernel_interface/kernel_interface.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/interface.h"
#include "drivers/kernel_interface/checksum.h"
#include "drivers/netlink.h"
#include "drivers/port.h"

struct kernel_interface {
	char name[IF_NAMESIZE];
	uint32_t index;
	int fd; /* the tap */
	struct mnl_socket *events;
	int facts; /* descriptor for queries */
	bool unread; /* something was announced and has not been read yet */
	bool fill_checksums;
	bool carrier;
	atomic_uint_fast64_t lost; /* a relaxed counter; written by the thread that takes */
	struct kernel_interface_state state;
};

/* ---- opening ---- */

static void __attribute__((format(printf, 4, 5)))
explain(const char *name, char *why, size_t size, const char *text, ...)
{
	va_list arguments;
	int n = snprintf(why, size, "--kernel-interface %s: ", name);

	va_start(arguments, text);
	if (n >= 0 && (size_t)n < size)
		vsnprintf(why + n, size - (size_t)n, text, arguments);
	va_end(arguments);
}

/* Whether the kernel accepts the name (dev_valid_name), and does not take it for a pattern. */
static bool is_name(const char *name)
{
	size_t length = strlen(name);

	if (length == 0 || length >= IF_NAMESIZE || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return false;
	for (size_t i = 0; i < length; i++)
		if (strchr("/:%", name[i]) != NULL || isspace((unsigned char)name[i]))
			return false;
	return true;
}

static void explain_tap(const char *name, int error, char *why, size_t size)
{
	if (error == EBUSY || error == EEXIST || error == EINVAL)
		explain(name, why, size, "the name is taken (ip link lists them): choose another");
	else if (error == EPERM || error == EACCES)
		explain(name, why, size, "making an interface needs root or CAP_NET_ADMIN");
	else if (error == ENOENT || error == ENODEV || error == ENXIO)
		explain(name, why, size, "this host has no /dev/net/tun (modprobe tun)");
	else
		explain(name, why, size, "%s", strerror(error));
}

/* The descriptor of a new tap, or -1 and errno. */
static int make_tap(const char *name)
{
	struct ifreq r = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd, error;

	if (if_nametoindex(name) != 0) {
		errno = EEXIST; /* it may be a tap that waits for another process */
		return -1;
	}
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	memcpy(r.ifr_name, name, strlen(name) + 1);
	if (ioctl(fd, TUNSETIFF, &r) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int set_mtu(struct kernel_interface *k, uint16_t mtu)
{
	struct ifreq r = { .ifr_mtu = mtu };

	return interface_request(k->facts, k->index, SIOCSIFMTU, &r);
}

static int set_hardware_address(struct kernel_interface *k, const struct mac *mac)
{
	struct ifreq r = { .ifr_hwaddr.sa_family = ARPHRD_ETHER };

	memcpy(r.ifr_hwaddr.sa_data, mac->octet, sizeof(mac->octet));
	return interface_request(k->facts, k->index, SIOCSIFHWADDR, &r);
}

static int set_up(struct kernel_interface *k)
{
	struct ifreq r = { 0 };

	if (interface_request(k->facts, k->index, SIOCGIFFLAGS, &r) != 0)
		return -1;
	r.ifr_flags |= IFF_UP;
	return interface_request(k->facts, k->index, SIOCSIFFLAGS, &r);
}

/* False: a part of it could not be read. */
static bool take_state(struct kernel_interface *k)
{
	k->state.up = ifindex_up(k->facts, k->index);
	k->state.mtu = (uint16_t)MIN_OF(ifindex_mtu(k->facts, k->index), (uint32_t)UINT16_MAX);
	ifindex_mac(k->facts, k->index, &k->state.mac);
	return ifindex_promiscuous(k->index, &k->state.promiscuous);
}

/* Sets the interface's properties, and sets it up. NULL, or what failed: errno says why. */
static const char *dress(struct kernel_interface *k, const struct mac *mac, uint16_t mtu)
{
	if (set_hardware_address(k, mac) != 0)
		return "its MAC address";
	if (set_mtu(k, mtu) != 0)
		return "its MTU";
	return set_up(k) != 0 ? "it up" : NULL;
}

static struct kernel_interface *new_interface(const char *name, char *why, size_t why_size)
{
	struct kernel_interface *k = calloc(1, sizeof(*k));

	if (k == NULL) {
		explain(name, why, why_size, "no memory");
		return NULL;
	}
	k->fd = make_tap(name);
	if (k->fd < 0) {
		explain_tap(name, errno, why, why_size);
		free(k);
		return NULL;
	}
	snprintf(k->name, sizeof(k->name), "%s", name);
	k->index = if_nametoindex(name);
	k->carrier = true; /* a tap has a carrier unless told otherwise */
	/* First, so that no change after the addresses are read is missed. */
	k->events = interface_events_open();
	k->facts = interface_socket();
	return k;
}

struct kernel_interface *kernel_interface_open(const char *name, const struct mac *mac,
					       uint16_t mtu, char *why, size_t why_size)
{
	struct kernel_interface *k;
	const char *wrong;

	if (!is_name(name)) {
		explain(name, why, why_size,
			"give a name of 1 to %d characters without '/', ':', '%%' or blanks",
			IF_NAMESIZE - 1);
		return NULL;
	}
	k = new_interface(name, why, why_size);
	if (k == NULL)
		return NULL;
	wrong = dress(k, mac, mtu);
	if (wrong != NULL) {
		explain(name, why, why_size, "cannot set %s: %s", wrong, strerror(errno));
		kernel_interface_close(k);
		return NULL;
	}
	take_state(k);
	return k;
}

void kernel_interface_close(struct kernel_interface *k)
{
	if (k == NULL)
		return;
	interface_events_close(k->events);
	if (k->facts >= 0)
		close(k->facts);
	close(k->fd); /* the interface goes with it */
	free(k);
}

void kernel_interface_fill_checksums(struct kernel_interface *k)
{
	k->fill_checksums = true;
}

int kernel_interface_fd(const struct kernel_interface *k)
{
	return k->fd;
}

uint32_t kernel_interface_index(const struct kernel_interface *k)
{
	return k->index;
}

const char *kernel_interface_name(const struct kernel_interface *k)
{
	return k->name;
}

/* ---- addresses ---- */

/* Returns the errno in the kernel's answer. */
static int ask_kernel(const union netlink_question *q)
{
	struct mnl_socket *s = netlink_open(true);
	union netlink_answer a;
	int error;

	if (s == NULL)
		return errno;
	error = netlink_ask(s, q, &a);
	netlink_close(s);
	return error == 0 && a.header.nlmsg_type != NLMSG_ERROR ? EIO : error;
}

int kernel_interface_add_address(struct kernel_interface *k, const struct gid *gid, uint8_t prefix)
{
	bool ipv4 = gid_is_ipv4(gid);
	const uint8_t *octets = gid->octet + (ipv4 ? 12 : 0);
	size_t length = ipv4 ? 4 : 16;
	union netlink_question q;
	struct ifaddrmsg *m = netlink_begin(&q, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE, sizeof(*m));
	uint8_t broadcast[4];

	m->ifa_family = ipv4 ? AF_INET : AF_INET6;
	m->ifa_prefixlen = prefix;
	m->ifa_index = k->index;
	netlink_put(&q, IFA_LOCAL, octets, length);
	netlink_put(&q, IFA_ADDRESS, octets, length);
	if (ipv4 && prefix < 31) {
		uint32_t host = prefix == 0 ? UINT32_MAX : UINT32_MAX >> prefix;

		store_be32(broadcast, load_be32(octets) | host);
		netlink_put(&q, IFA_BROADCAST, broadcast, sizeof(broadcast));
	}
	return ask_kernel(&q);
}

/* ---- frames ---- */

static bool give_one(struct kernel_interface *k, struct rte_mbuf *m)
{
	struct iovec part[LIMIT_KERNEL_SEGMENTS];
	int n = 0;

	if (k->fill_checksums && m->nb_segs == 1)
		checksum_complete(rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
	if (m->nb_segs > LIMIT_KERNEL_SEGMENTS)
		return false; /* the kernel would take a part of the frame for the whole */
	for (struct rte_mbuf *s = m; s != NULL; s = s->next)
		part[n++] = (struct iovec){ rte_pktmbuf_mtod(s, void *), s->data_len };
	return writev(k->fd, part, n) == (ssize_t)m->pkt_len;
}

uint32_t kernel_interface_give(struct kernel_interface *k, struct rte_mbuf **frame, uint32_t n)
{
	uint32_t took = 0;

	for (uint32_t i = 0; i < n; i++)
		took += give_one(k, frame[i]);
	rte_pktmbuf_free_bulk(frame, n);
	return took;
}

/* Returns the octets read; 0: the frame was too long for the buffer; -1: there is none. */
static ssize_t take_one(struct kernel_interface *k, struct rte_mbuf *m)
{
	uint16_t room = rte_pktmbuf_tailroom(m);
	uint8_t more; /* a tap cuts a frame to the requested size without notice */
	struct iovec part[2] = { { rte_pktmbuf_mtod(m, void *), room }, { &more, 1 } };
	ssize_t n = readv(k->fd, part, 2);

	if (n < 0)
		return errno == EFAULT || errno == EINVAL ? 0 : -1;
	return n > room || n < RTE_ETHER_HDR_LEN ? 0 : n;
}

uint32_t kernel_interface_take(struct kernel_interface *k, struct rte_mempool *pool,
			       struct rte_mbuf **frame, uint32_t n, bool *starved)
{
	uint32_t taken = 0;

	*starved = false;
	for (uint32_t tries = 0; tries < n; tries++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
		ssize_t octets;

		if (m == NULL) {
			*starved = true;
			break;
		}
		octets = take_one(k, m);
		if (octets > 0) {
			m->data_len = (uint16_t)octets;
			m->pkt_len = (uint32_t)octets;
			frame[taken++] = m;
			continue;
		}
		rte_pktmbuf_free(m);
		if (octets < 0)
			break;
		atomic_fetch_add_explicit(&k->lost, 1, memory_order_relaxed);
	}
	return taken;
}

uint64_t kernel_interface_lost(const struct kernel_interface *k)
{
	return atomic_load_explicit(&k->lost, memory_order_relaxed);
}

/* ---- changes by others ---- */

void kernel_interface_set_carrier(struct kernel_interface *k, bool carrier)
{
	int on = carrier;

	if (carrier != k->carrier && ioctl(k->fd, TUNSETCARRIER, &on) == 0)
		k->carrier = carrier;
}

void kernel_interface_set_mac(struct kernel_interface *k, const struct mac *mac)
{
	if (set_hardware_address(k, mac) == 0)
		k->state.mac = *mac;
}

bool kernel_interface_refresh(struct kernel_interface *k, struct port *p, uint16_t most,
			      struct kernel_interface_state *s)
{
	bool changed = k->events == NULL || interface_events_happened(k->events) || k->unread;

	if (changed) {
		k->unread = !take_state(k);
		k->unread |= !interface_addresses(k->index, p);
		ifindex_name(k->facts, k->index, p->netdev);
	}
	if (k->state.mtu > most && set_mtu(k, most) == 0) {
		k->state.mtu = most;
		changed = true;
	}
	*s = k->state;
	return changed;
}
