/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's interface on a port: a real tap in a network namespace of the test's own. The test
 * plays the port, and sees the kernel's side through a packet socket and through the kernel's
 * answers.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/interface.h"
#include "drivers/kernel_interface/kernel_interface.h"
#include "drivers/port.h"
#include "net_namespace.h"

#define NAME	    "exc0"
#define BUFFERS	    31u
#define ROOM	    2048u
#define PATIENCE_MS 10000

static const struct mac own = { { 2, 0, 0, 0, 0, 1 } };
static const struct mac peer = { { 2, 0, 0, 0, 0, 2 } };
static const struct gid own4 = { { [10] = 0xff, 0xff, 10, 9, 0, 1 } };
static const struct gid own6 = { { 0xfd, 9, [15] = 1 } };

static struct rte_mempool *pool;
static struct kernel_interface *k;
static struct port p;
static char why[256];

static void begin(void)
{
	static char prefix[64];
	char *arguments[] = { (char *)"kernel_interface_test",
			      (char *)"--no-huge",
			      (char *)"--no-shconf",
			      (char *)"--no-pci",
			      (char *)"--log-level=*:error",
			      (char *)"-m",
			      (char *)"64",
			      (char *)"-l",
			      (char *)"0",
			      prefix };

	net_namespace_enter();
	if (access("/dev/net/tun", R_OK | W_OK) != 0) {
		fprintf(stderr, "skipped: this host has no /dev/net/tun\n");
		cr_skip_test("no /dev/net/tun");
	}
	snprintf(prefix, sizeof(prefix), "--file-prefix=kernel_interface_test_%d", (int)getpid());
	cr_assert_geq(rte_eal_init(ARRAY_SIZE(arguments), arguments), 0, "EAL");
	pool = rte_pktmbuf_pool_create("frames", BUFFERS, 0, 0, ROOM + RTE_PKTMBUF_HEADROOM,
				       SOCKET_ID_ANY);
	cr_assert_not_null(pool, "%s", rte_strerror(rte_errno));
}

TestSuite(kernel_interface, .init = begin, .timeout = 60);

static void open_it(void)
{
	/* keep the kernel from sending by itself: router solicitations, group reports */
	cr_assert_eq(system("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6"), 0);
	k = kernel_interface_open(NAME, &own, 1400, why, sizeof(why));
	cr_assert_not_null(k, "%s", why);
}

/* ---- opening ---- */

Test(kernel_interface, the_interface_is_as_requested)
{
	struct kernel_interface_state s;
	uint32_t index;

	open_it();
	index = index_of(NAME);
	cr_expect_eq(kernel_interface_index(k), index);
	cr_expect_str_eq(kernel_interface_name(k), NAME);
	cr_expect(kernel_interface_refresh(k, &p, 1400, &s), "a new interface must be reported");
	cr_expect(s.up);
	cr_expect_not(s.promiscuous);
	cr_expect_eq(s.mtu, 1400);
	cr_expect_arr_eq(s.mac.octet, own.octet, 6);
	cr_expect_eq(ifindex_mtu(-1, index), 1400);
	await(ifindex_running, index, true, "its carrier");
	kernel_interface_close(k);
	cr_expect_eq(if_nametoindex(NAME), 0, "it is removed with its owner");
	kernel_interface_close(NULL);
}

Test(kernel_interface, invalid_names_are_refused)
{
	static const char *const names[] = { "",
					     ".",
					     "..",
					     "a/b",
					     "a:b",
					     "a b",
					     "a\tb",
					     "tap%d",
					     "sixteen-letters.",
					     "much-longer-than-any-name-is" };
	char begins[64];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cr_expect_null(kernel_interface_open(names[i], &own, 1400, why, sizeof(why)));
		snprintf(begins, sizeof(begins), "--kernel-interface %s: give a name of 1 to 15",
			 names[i]);
		cr_expect_eq(strncmp(why, begins, strlen(begins)), 0, "%s", why);
	}
	k = kernel_interface_open("fifteen-letters", &own, 1400, why, sizeof(why));
	cr_expect_not_null(k, "%s", why);
}

static void expect_refusal(const struct mac *mac, uint16_t mtu, const char *because)
{
	char wanted[256];

	cr_expect_null(kernel_interface_open(NAME, mac, mtu, why, sizeof(why)));
	snprintf(wanted, sizeof(wanted), "--kernel-interface " NAME ": %s", because);
	cr_expect_str_eq(why, wanted, "%s, not %s", why, wanted);
}

Test(kernel_interface, refusals_of_the_kernel_are_explained)
{
	const struct mac group = { { 1, 0, 0x5e, 0, 0, 1 } };

	expect_refusal(&group, 1400, "cannot set its MAC address: Cannot assign requested address");
	expect_refusal(&own, 40, "cannot set its MTU: Invalid argument");
	cr_expect_eq(if_nametoindex(NAME), 0, "the interface was not removed");
	/* a tap without an owner also has the name */
	ip("tuntap add " NAME " mode tap");
	expect_refusal(&own, 1400, "the name is taken (ip link lists them): choose another");
	ip("link delete " NAME);
	cr_assert_eq(seteuid(65534), 0);
	expect_refusal(&own, 1400, "making an interface needs root or CAP_NET_ADMIN");
	cr_assert_eq(seteuid(0), 0);
	open_it();
}

/* ---- addresses ---- */

static uint32_t broadcast_of(const char *name)
{
	struct ifaddrs *list;
	uint32_t found = 0;

	cr_assert_eq(getifaddrs(&list), 0);
	for (const struct ifaddrs *a = list; a != NULL; a = a->ifa_next)
		if (strcmp(a->ifa_name, name) == 0 && a->ifa_addr != NULL &&
		    a->ifa_addr->sa_family == AF_INET && a->ifa_broadaddr != NULL)
			found = ntohl(((const struct sockaddr_in *)(const void *)a->ifa_broadaddr)
					      ->sin_addr.s_addr);
	freeifaddrs(list);
	return found;
}

Test(kernel_interface, addresses_are_added_and_reported)
{
	struct kernel_interface_state s;

	open_it();
	cr_assert_eq(system("echo 0 >/proc/sys/net/ipv6/conf/" NAME "/disable_ipv6"), 0);
	cr_expect_eq(kernel_interface_add_address(k, &own4, 20), 0);
	cr_expect_eq(broadcast_of(NAME), 0x0a090fff);
	cr_expect_eq(kernel_interface_add_address(k, &own6, 64), 0);
	cr_expect_eq(kernel_interface_add_address(k, &own4, 20), EEXIST);
	cr_expect_eq(kernel_interface_add_address(k, &own4, 33), EINVAL);
	cr_expect(kernel_interface_refresh(k, &p, 1400, &s));
	/* the kernel may add fe80::... at any time */
	cr_assert_geq(p.addresses, 2);
	cr_expect_arr_eq(p.address[p.addresses - 2].gid.octet, own4.octet, 16);
	cr_expect_eq(p.address[p.addresses - 2].prefix, 20);
	cr_expect_arr_eq(p.address[p.addresses - 1].gid.octet, own6.octet, 16);
	ip("link delete " NAME);
	cr_expect_eq(kernel_interface_add_address(k, &own4, 24), ENODEV);
}

/* ---- frames ---- */

/* A frame in `segments` mbufs. */
static struct rte_mbuf *frame_of(const uint8_t *octets, uint32_t length, uint32_t segments)
{
	struct rte_mbuf *first = NULL, *m;

	for (uint32_t i = 0; i < segments; i++) {
		uint32_t from = i * (length / segments);
		uint32_t n = i + 1 < segments ? length / segments : length - from;

		m = rte_pktmbuf_alloc(pool);
		cr_assert_not_null(m);
		memcpy(rte_pktmbuf_append(m, (uint16_t)n), octets + from, n);
		if (first == NULL)
			first = m;
		else
			cr_assert_eq(rte_pktmbuf_chain(first, m), 0);
	}
	return first;
}

static int packet_socket(uint32_t index)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = (int)index };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* Octets of the next frame or datagram, within PATIENCE_MS. */
static ssize_t next(int fd, uint8_t *octets, size_t room)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	poll(&readable, 1, PATIENCE_MS);
	return recv(fd, octets, room, MSG_DONTWAIT);
}

/* A frame of an unused protocol. */
static void fill(uint8_t *octets, uint32_t length)
{
	memcpy(octets, own.octet, 6);
	memcpy(octets + 6, peer.octet, 6);
	store_be16(octets + 12, 0x88b5);
	for (uint32_t i = 14; i < length; i++)
		octets[i] = (uint8_t)(i * 7);
}

Test(kernel_interface, frames_that_are_given_arrive)
{
	static const uint32_t segments[] = { 1, 2, 16 };
	uint8_t octets[1414], got[2048];
	struct rte_mbuf *m[2];
	int fd;

	open_it();
	fd = packet_socket(kernel_interface_index(k));
	fill(octets, sizeof(octets));
	for (size_t i = 0; i < ARRAY_SIZE(segments); i++) {
		m[0] = frame_of(octets, sizeof(octets), segments[i]);
		m[1] = frame_of(octets, 60, 1);
		cr_expect_eq(kernel_interface_give(k, m, 2), 2);
		cr_expect_eq(next(fd, got, sizeof(got)), (ssize_t)sizeof(octets));
		cr_expect_arr_eq(got, octets, sizeof(octets), "%u segments", segments[i]);
		cr_expect_eq(next(fd, got, sizeof(got)), 60);
	}
	/* nor does it accept a part of one */
	m[0] = frame_of(octets, sizeof(octets), 17);
	m[1] = frame_of(octets, 60, 1);
	cr_expect_eq(kernel_interface_give(k, m, 2), 1);
	cr_expect_eq(next(fd, got, sizeof(got)), 60, "only the second one");
	ip("link set " NAME " down");
	m[0] = frame_of(octets, 60, 1);
	cr_expect_eq(kernel_interface_give(k, m, 1), 0, "it is down");
	cr_expect_eq(rte_mempool_avail_count(pool), BUFFERS, "a buffer was leaked");
	close(fd);
}

static uint32_t take(struct rte_mbuf **frame, uint32_t n, bool starved)
{
	bool was;
	uint32_t taken = kernel_interface_take(k, pool, frame, n, &was);

	cr_expect_eq(was, starved);
	return taken;
}

/* Waits up to PATIENCE_MS for a frame of the kernel. */
static void await_frame(void)
{
	struct pollfd readable = { .fd = kernel_interface_fd(k), .events = POLLIN };

	cr_assert_eq(poll(&readable, 1, PATIENCE_MS), 1, "the kernel's frame did not come");
}

Test(kernel_interface, frames_of_the_kernel_are_taken)
{
	struct rte_mbuf *m[BUFFERS + 1], *held[BUFFERS];
	uint8_t octets[1414];
	struct pollfd readable;
	int fd;

	open_it();
	readable = (struct pollfd){ .fd = kernel_interface_fd(k), .events = POLLIN };
	fd = packet_socket(kernel_interface_index(k));
	fill(octets, sizeof(octets));
	cr_expect_eq(poll(&readable, 1, 0), 0);
	cr_expect_eq(take(m, 4, false), 0);
	for (uint32_t length = 60; length <= 62; length++)
		cr_assert_eq(send(fd, octets, length, 0), (ssize_t)length);
	cr_assert_eq(send(fd, octets, sizeof(octets), 0), (ssize_t)sizeof(octets));
	await_frame();
	cr_assert_eq(take(m, 3, false), 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(m[i]->pkt_len, 60 + i);
	/* a lack of buffers loses nothing */
	cr_assert_eq(rte_pktmbuf_alloc_bulk(pool, held, BUFFERS - 3), 0);
	cr_expect_eq(take(m + 3, 4, true), 0);
	rte_pktmbuf_free_bulk(held, BUFFERS - 3);
	cr_assert_eq(take(m + 3, 4, false), 1);
	cr_expect_eq(m[3]->data_len, sizeof(octets));
	cr_expect_arr_eq(rte_pktmbuf_mtod(m[3], uint8_t *), octets, sizeof(octets));
	rte_pktmbuf_free_bulk(m, 4);
	cr_expect_eq(kernel_interface_lost(k), 0);
	cr_expect_eq(rte_mempool_avail_count(pool), BUFFERS);
	close(fd);
}

/* A frame longer than a buffer is counted, and does not block those behind it. */
Test(kernel_interface, a_frame_too_long_for_a_buffer)
{
	uint8_t octets[9014];
	struct rte_mbuf *m[4];
	int fd;

	open_it();
	ip("link set " NAME " mtu 9000");
	fd = packet_socket(kernel_interface_index(k));
	fill(octets, sizeof(octets));
	cr_assert_eq(send(fd, octets, sizeof(octets), 0), (ssize_t)sizeof(octets));
	cr_assert_eq(send(fd, octets, 60, 0), 60);
	await_frame();
	cr_expect_eq(take(m, 4, false), 1);
	cr_expect_eq(m[0]->pkt_len, 60);
	cr_expect_eq(kernel_interface_lost(k), 1);
	rte_pktmbuf_free(m[0]);
	close(fd);
}

/* A datagram whose checksum was left to hardware: the kernel accepts it only if we complete it. */
Test(kernel_interface, missing_checksums_are_filled_in)
{
	static const uint8_t datagram[] = {
		2,    0,    0,	  0,	0, 1,  2, 0, 0,	  0,   0,   2,	 0x08, 0x00, /* Ethernet */
		0x45, 0,    0,	  32,	0, 1,  0, 0, 64,  17,  0,   0,	 10,   9,
		0,    2,    10,	  9,	0, 1, /* IPv4 */
		0x30, 0x39, 0x30, 0x39, 0, 12, 0, 0, 'u', 'r', 'o', 'c', /* UDP 12345 */
	};
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(12345) };
	uint8_t octets[sizeof(datagram)], got[64];
	uint32_t sum = 0, pseudo = 17 + 12;
	struct rte_mbuf *m;
	int fd;

	open_it();
	cr_assert_eq(kernel_interface_add_address(k, &own4, 24), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	memcpy(octets, datagram, sizeof(octets));
	for (uint32_t i = 14; i < 34; i += 2)
		sum += load_be16(octets + i);
	store_be16(octets + 24, (uint16_t) ~(sum + (sum >> 16)));
	for (uint32_t i = 26; i < 34; i += 2)
		pseudo += load_be16(octets + i);
	store_be16(octets + 40, (uint16_t)(pseudo + (pseudo >> 16)));

	m = frame_of(octets, sizeof(octets), 1);
	cr_expect_eq(kernel_interface_give(k, &m, 1), 1);
	cr_expect_eq(recv(fd, got, sizeof(got), 0), -1, "a wrong sum");
	kernel_interface_fill_checksums(k);
	m = frame_of(octets, sizeof(octets), 1);
	cr_expect_eq(kernel_interface_give(k, &m, 1), 1);
	cr_expect_eq(next(fd, got, sizeof(got)), 4);
	cr_expect_arr_eq(got, "uroc", 4);
	close(fd);
}

/* ---- changes by others ---- */

static struct kernel_interface_state news(const char *of)
{
	struct kernel_interface_state s;

	cr_expect(kernel_interface_refresh(k, &p, 1400, &s), "%s was not reported", of);
	return s;
}

/* Waits until the kernel's delayed announcements are over. */
static void no_news(void)
{
	struct kernel_interface_state s;
	int quiet = 0;

	for (int tries = 0; quiet < 20; tries++) {
		cr_assert_lt(tries, 1000, "the announcements do not stop");
		quiet = kernel_interface_refresh(k, &p, 1400, &s) ? 0 : quiet + 1;
		poll(NULL, 0, 10);
	}
}

Test(kernel_interface, changes_by_the_administrator_are_followed)
{
	struct kernel_interface_state s;
	const struct mac other = { { 2, 0, 0, 0, 0, 9 } };

	open_it();
	no_news();
	ip("link set " NAME " mtu 1300");
	cr_expect_eq(news("an MTU").mtu, 1300);
	no_news();
	ip("link set " NAME " mtu 9000");
	s = news("an MTU above the port's");
	cr_expect_eq(s.mtu, 1400);
	cr_expect_eq(ifindex_mtu(-1, kernel_interface_index(k)), 1400, "the MTU was reset");
	no_news();
	ip("link set " NAME " promisc on");
	cr_expect(news("promisc").promiscuous);
	no_news();
	ip("link set " NAME " address 02:00:00:00:00:09");
	s = news("a MAC address");
	cr_expect_arr_eq(s.mac.octet, other.octet, 6);
	kernel_interface_set_mac(k, &own);
	s = news("its own MAC address again");
	cr_expect_arr_eq(s.mac.octet, own.octet, 6);
	no_news();
	ip("link set " NAME " down");
	cr_expect_not(news("down").up);
	ip("link set " NAME " up");
	cr_expect(news("up").up);
	no_news();
	ip("link delete " NAME);
	cr_expect_not(news("its removal").up);
}

Test(kernel_interface, the_carrier_follows_the_port)
{
	open_it();
	await(ifindex_running, kernel_interface_index(k), true, "a carrier");
	kernel_interface_set_carrier(k, false);
	await(ifindex_running, kernel_interface_index(k), false, "loss of the carrier");
	cr_expect(ifindex_up(-1, kernel_interface_index(k)));
	kernel_interface_set_carrier(k, false);
	kernel_interface_set_carrier(k, true);
	await(ifindex_running, kernel_interface_index(k), true, "a carrier again");
}
