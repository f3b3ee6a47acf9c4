/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Linux reports about an interface: one end of a veth pair in a network namespace of the
 * test's.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "drivers/interface.h"
#include "drivers/log.h"
#include "drivers/netlink.h"
#include "drivers/port.h"
#include "net_namespace.h"

#define NEAR_MAC    "02:00:00:00:00:01"
#define QUIET_MS    200
#define PATIENCE_MS 10000

static uint32_t near;
static struct port p;

static void begin(void)
{
	net_namespace_enter();
	ip("link add near address " NEAR_MAC " type veth peer name far");
	near = index_of("near");
}

TestSuite(interface, .init = begin, .timeout = 60);

static bool promiscuous(uint32_t ifindex)
{
	bool is = false;

	cr_expect(ifindex_promiscuous(ifindex, &is));
	return is;
}

/* ---- facts ---- */

Test(interface, facts_follow_the_interface)
{
	const struct mac wanted = { { 2, 0, 0, 0, 0, 1 } }, other = { { 2, 0, 0, 0, 0, 7 } };
	struct mac mac = { 0 };

	cr_expect_eq(ifindex_mtu(-1, near), 1500);
	ip("link set near mtu 1337");
	cr_expect_eq(ifindex_mtu(-1, near), 1337);
	cr_expect_eq(ifindex_speed(-1, near), 10000, "a veth reports 10 Gbit/s");
	cr_expect_eq(ifindex_speed(-1, 99999), 0, "no such interface");
	cr_expect_eq(ifindex_speed(-1, index_of("lo")), 0, "the loopback interface reports none");
	ifindex_mac(-1, near, &mac);
	cr_expect_arr_eq(mac.octet, wanted.octet, 6);
	ip("link set near address 02:00:00:00:00:07");
	ifindex_mac(-1, near, &mac);
	cr_expect_arr_eq(mac.octet, other.octet, 6);
}

Test(interface, up_is_not_running)
{
	cr_expect_not(ifindex_up(-1, near));
	cr_expect_not(ifindex_running(-1, near));
	ip("link set near up");
	cr_expect(ifindex_up(-1, near));
	cr_expect_not(ifindex_running(-1, near), "the other end is down");
	ip("link set far up");
	await(ifindex_running, near, true, "a carrier");
	ip("link set far down");
	await(ifindex_running, near, false, "loss of the carrier");
	cr_expect(ifindex_up(-1, near));
}

/* Both the administrator's flag and the membership of a program, which sets no flag. */
Test(interface, promiscuity_by_administrator_or_program)
{
	struct packet_mreq want = { .mr_ifindex = (int)near, .mr_type = PACKET_MR_PROMISC };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	cr_expect_not(promiscuous(near));
	ip("link set near promisc on");
	cr_expect(promiscuous(near));
	ip("link set near promisc off");
	cr_expect_not(promiscuous(near));
	cr_assert_eq(setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &want, sizeof(want)), 0);
	cr_expect(promiscuous(near));
	cr_expect_not(promiscuous(index_of("far")));
	close(fd);
	cr_expect_not(promiscuous(near));
}

/* hostile H-129: an interface that changes. */
Test(interface, an_interface_that_is_gone)
{
	struct mac mac = { { 1, 2, 3, 4, 5, 6 } };
	const struct mac before = mac;
	struct ifreq r = { 0 };

	ip("link set near up");
	ip("link set near promisc on");
	ip("link delete near");
	cr_expect_eq(ifindex_mtu(-1, near), 0);
	cr_expect_not(ifindex_up(-1, near));
	cr_expect_not(ifindex_running(-1, near));
	cr_expect_not(promiscuous(near));
	ifindex_mac(-1, near, &mac);
	cr_expect_arr_eq(mac.octet, before.octet, 6);
	errno = 0;
	cr_expect_eq(interface_request(-1, near, SIOCGIFMTU, &r), -1);
	cr_expect_eq(errno, ENODEV, "%s", strerror(errno));
	cr_expect(interface_addresses(near, &p));
	cr_expect_eq(p.addresses, 0);
}

/* When no descriptor is free the facts are still read with the one that is kept. */
Test(interface, when_programs_have_all_descriptors)
{
	struct mac mac = { 0 };
	struct rlimit limit;
	bool is = true;
	int fd;

	ip("link set near up");
	ip("link set far up");
	ip("address add 10.9.0.1/20 dev near");
	await(ifindex_running, near, true, "a carrier");
	cr_expect(interface_addresses(near, &p));
	fd = interface_socket();
	cr_assert_geq(fd, 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect(ifindex_running(fd, near));
	cr_expect_eq(ifindex_mtu(fd, near), 1500);
	ifindex_mac(fd, near, &mac);
	cr_expect_eq(mac.octet[5], 1);
	cr_expect_eq(ifindex_mtu(-1, near), 0);
	cr_expect_not(interface_addresses(near, &p));
	cr_expect_geq(p.addresses, 1, "they are lost");
	cr_expect_not(ifindex_promiscuous(near, &is));
	cr_expect(is);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	close(fd);
}

/* ---- addresses ---- */

static void expect_addresses(const char *const *wanted, uint32_t n)
{
	char text[INET6_ADDRSTRLEN], got[INET6_ADDRSTRLEN + 8];

	interface_addresses(near, &p);
	cr_assert_eq(p.addresses, n, "%u addresses, not %u", p.addresses, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct gid *g = &p.address[i].gid;

		if (gid_is_ipv4(g))
			inet_ntop(AF_INET, g->octet + 12, text, sizeof(text));
		else
			inet_ntop(AF_INET6, g->octet, text, sizeof(text));
		snprintf(got, sizeof(got), "%s/%u", text, p.address[i].prefix);
		cr_expect_str_eq(got, wanted[i], "address %u: %s, not %s", i, got, wanted[i]);
	}
}

/*
 * Link-local, IPv4, then other IPv6 addresses, whatever the order of their creation. Among IPv4
 * addresses the kernel puts the second one of a network after the others.
 */
Test(interface, addresses_in_their_order)
{
	static const char *const all[] = { "fe80::1/64", "10.0.0.1/24", "192.0.2.5/32",
					   "10.0.0.9/24", "2001:db8::1/127" };
	static const char *const rest[] = { "10.0.0.9/24", "192.0.2.5/32" };

	ip("link set near addrgenmode none");
	ip("link set near up");
	expect_addresses(NULL, 0);
	ip("address add 2001:db8::1/127 dev near nodad");
	ip("address add 10.0.0.1/24 dev near");
	ip("address add 10.0.0.9/24 dev near");
	ip("address add fe80::1/64 dev near nodad");
	ip("address add 192.0.2.5/32 dev near");
	ip("address add 10.0.0.2/24 dev far");
	expect_addresses(all, ARRAY_SIZE(all));
	ip("-6 address flush dev near");
	ip("address replace 10.0.0.9/24 dev near");
	ip("address delete 10.0.0.1/24 dev near");
	ip("address replace 10.0.0.9/24 dev near");
	ip("address delete 192.0.2.5/32 dev near");
	ip("address add 192.0.2.5/32 dev near");
	expect_addresses(rest, ARRAY_SIZE(rest));
}

/* Addresses are found by interface, whatever its name, and whatever kind of address it is. */
Test(interface, addresses_survive_a_new_name)
{
	static const char *const before[] = { "fe80::1/64", "10.0.0.1/24", "10.1.0.1/24" };
	static const char *const down[] = { "10.0.0.1/24", "10.1.0.1/24" };
	static const char *const after[] = { "10.0.0.1/24", "10.1.0.1/24", "10.2.0.1/31" };
	char name[IF_NAMESIZE] = "";

	ip("link set near addrgenmode none");
	ip("link set near up");
	ip("address add fe80::1/64 dev near nodad");
	ip("address add 10.0.0.1/24 dev near");
	ip("address add 10.1.0.1/24 dev near label near:other");
	expect_addresses(before, ARRAY_SIZE(before));
	ip("link set near down");
	ip("link set near name other");
	expect_addresses(down, ARRAY_SIZE(down));
	ifindex_name(-1, near, name);
	cr_expect_str_eq(name, "other");
	/* the old name belongs to another interface now */
	ip("link set far name near");
	ip("address add 10.9.0.1/24 dev near");
	ip("address add 10.2.0.1 peer 10.2.0.0/31 dev other");
	ip("link set other up");
	expect_addresses(after, ARRAY_SIZE(after));
	ip("link delete other");
	expect_addresses(NULL, 0);
	ifindex_name(-1, near, name);
	cr_expect_str_eq(name, "other", "as long as it was there");
}

/* What is written to DPDK's log until log_close(), whose text the caller frees. */
static FILE *log_file;
static char *log_text;
static size_t log_size;

static void log_open(void)
{
	log_file = open_memstream(&log_text, &log_size);
	cr_assert_eq(rte_openlog_stream(log_file), 0);
}

static char *log_close(void)
{
	cr_assert_eq(rte_openlog_stream(NULL), 0);
	fclose(log_file);
	return log_text;
}

Test(interface, what_a_table_does_not_hold_is_said_once)
{
	char *text;

	for (uint32_t i = 1; i <= LIMIT_ADDRESSES; i++)
		ip("address add 10.0.%u.1/24 dev near", i);
	log_open();
	interface_addresses(near, &p);
	fflush(log_file);
	cr_expect_eq(log_size, 0, "%s", log_text);
	ip("address add 10.0.200.1/24 dev near");
	interface_addresses(near, &p);
	interface_addresses(near, &p);
	text = log_close();
	cr_expect_str_eq(
		text,
		"uroce: near has more than 16 addresses: the engine uses the first ones only\n");
	free(text);
}

Test(interface, no_more_addresses_than_a_table_holds)
{
	for (uint32_t i = 1; i <= LIMIT_ADDRESSES + 3; i++)
		ip("address add 10.0.%u.1/24 dev near", i);
	interface_addresses(near, &p);
	cr_assert_eq(p.addresses, LIMIT_ADDRESSES);
	for (uint32_t i = 0; i < p.addresses; i++)
		cr_expect_eq(p.address[i].gid.octet[14], i + 1, "the first are kept");
}

/* ---- events ---- */

/* Reads earlier announcements, including one that comes between the two checks. */
static void falls_quiet(struct mnl_socket *events)
{
	struct pollfd readable = { .fd = mnl_socket_get_fd(events), .events = POLLIN };

	for (int looks = 0; poll(&readable, 1, QUIET_MS) != 0 || interface_events_happened(events);
	     looks++) {
		cr_assert_lt(looks, 50, "announcements do not stop");
		interface_events_happened(events);
	}
}

Test(interface, changes_are_announced_once)
{
	static const char *const changes[] = {
		"address add 10.0.0.1/24 dev near",
		"address add fd00::1/64 dev near nodad",
		"link set near mtu 1400",
		"link set near address 02:00:00:00:00:09",
		"address delete 10.0.0.1/24 dev near",
		"link delete near",
	};
	struct mnl_socket *events = interface_events_open();
	struct pollfd readable = { .events = POLLIN };

	cr_assert_not_null(events);
	readable.fd = mnl_socket_get_fd(events);
	/* no link-local address, which would be announced at an unknown time */
	ip("link set near addrgenmode none");
	ip("link set far addrgenmode none");
	ip("link set near up");
	ip("link set far up");
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		falls_quiet(events);
		ip("%s", changes[i]);
		/* a work queue of the kernel announces an IPv6 address some time later */
		poll(&readable, 1, PATIENCE_MS);
		cr_expect(interface_events_happened(events), "ip %s was not announced", changes[i]);
	}
	interface_events_close(events);
}

/* Announcements that did not fit the socket's buffer count as a change. */
Test(interface, lost_announcements_count)
{
	struct mnl_socket *events = interface_events_open();
	int fd = mnl_socket_get_fd(events), least = 1;
	uint8_t octets[8192];
	bool lost = false;

	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
	falls_quiet(events);
	for (uint32_t i = 1; i <= 40; i++)
		ip("address add 10.1.%u.1/24 dev near", i);
	/* read as the function does, to see that some were lost */
	for (uint32_t i = 0; i < 40 && !lost; i++)
		lost = recv(fd, octets, sizeof(octets), MSG_DONTWAIT | MSG_PEEK) < 0 &&
		       errno == ENOBUFS;
	for (uint32_t i = 1; i <= 40; i++)
		ip("address delete 10.1.%u.1/24 dev near", i);
	cr_expect(interface_events_happened(events));
	cr_expect(lost, "no announcement was lost, so this tests nothing");
	falls_quiet(events);
	interface_events_close(events);
}

Test(interface, without_a_descriptor_nothing_happens)
{
	cr_expect_not(interface_events_happened(NULL));
}
