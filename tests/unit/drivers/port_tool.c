/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port and its neighbours without an engine, for port_test.sh:
 *
 *	port_tool EAL... -- answer PORT IP/LEN,... TARGET,...   answers ARP, ND and echo; resolves
 *	port_tool EAL... -- netdev IFACE TARGET,...             prints what it learns; resolves; hears one group
 *	port_tool EAL... -- netdev_xdp IFACE TARGET,...         the same
 *	port_tool EAL... -- netdev_xdp_wide IFACE TARGET,...    ... with every frame
 *
 * Prints one line per fact. Ends at end of file of its standard input, or after 300 s.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/ethdev/netdev.h"
#include "drivers/neighbour/neighbour.h"

#define TARGETS	 8
#define PATIENCE (300 * TIME_S) /* longer than any test */

static struct neighbour_frames out;
static struct rte_mempool *pool;

struct target {
	char text[64];
	struct gid gid;
	int last;
};

static nanotime now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (nanotime)t.tv_sec * TIME_S + (nanotime)t.tv_nsec;
}

static void die(const char *text)
{
	fprintf(stderr, "port_tool: %s\n", text);
	exit(1);
}

static struct gid gid_of(const char *text)
{
	struct gid g = { { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, g.octet + 12) != 1 && inet_pton(AF_INET6, text, g.octet) != 1)
		die("not an address");
	return g;
}

static uint32_t read_targets(char *list, struct target *target)
{
	uint32_t n = 0;

	for (char *s = strtok(list, ","); s != NULL && n < TARGETS; s = strtok(NULL, ",")) {
		snprintf(target[n].text, sizeof(target[n].text), "%s", s);
		target[n].gid = gid_of(s);
		target[n++].last = -1;
	}
	return n;
}

static uint32_t read_addresses(char *list, struct neighbour_address *a)
{
	uint32_t n = 0;

	for (char *s = strtok(list, ","); s != NULL && n < LIMIT_GIDS; s = strtok(NULL, ",")) {
		char *slash = strchr(s, '/');

		if (slash == NULL)
			die("no prefix length");
		*slash = '\0';
		a[n].gid = gid_of(s);
		a[n++].prefix = (uint8_t)atoi(slash + 1);
	}
	return n;
}

static void send_all(struct port *p)
{
	for (uint32_t i = 0; i < out.count; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
		char *octets =
			m == NULL ? NULL : rte_pktmbuf_append(m, (uint16_t)out.frame[i].length);

		if (octets == NULL)
			die("no buffer");
		memcpy(octets, out.octets + out.frame[i].offset, out.frame[i].length);
		if (p->ops->tx_burst(p, 0, &m, 1) != 1)
			rte_pktmbuf_free(m);
	}
	neighbour_frames_clear(&out);
}

static bool is_roce(const struct rte_mbuf *m)
{
	const char *frame = rte_pktmbuf_mtod(m, const char *);
	uint16_t type = load_be16(frame + 12);

	return (type == 0x0800 && load_be16(frame + 36) == ROCE_UDP_PORT) ||
	       (type == 0x86dd && frame[20] == IPPROTO_UDP &&
		load_be16(frame + 56) == ROCE_UDP_PORT);
}

static void print_frame(const struct rte_mbuf *m)
{
	const char *frame = rte_pktmbuf_mtod(m, const char *);
	uint16_t type = load_be16(frame + 12);

	if (type == 0x8100 || type == 0x88a8)
		printf("tagged %04x %04x %04x %u\n", type, load_be16(frame + 14),
		       load_be16(frame + 16), m->pkt_len);
	else if (is_roce(m))
		printf("roce %u\n", m->pkt_len);
	fflush(stdout);
}

static void receive(struct port *p, struct neighbour_table *t)
{
	struct rte_mbuf *frames[32];
	uint16_t n = p->ops->rx_burst(p, 0, frames, 32);

	for (uint16_t i = 0; i < n; i++) {
		print_frame(frames[i]);
		neighbour_input(t, rte_pktmbuf_mtod(frames[i], uint8_t *), frames[i]->data_len,
				now(), &out);
		rte_pktmbuf_free(frames[i]);
	}
}

static void resolve(struct neighbour_table *t, struct target *target, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct mac m;
		int ret = neighbour_resolve(t, &target[i].gid, now(), &m);

		if (ret == target[i].last)
			continue;
		target[i].last = ret;
		if (ret == 0)
			printf("resolved %s %02x:%02x:%02x:%02x:%02x:%02x\n", target[i].text,
			       m.octet[0], m.octet[1], m.octet[2], m.octet[3], m.octet[4],
			       m.octet[5]);
		else
			printf("%s %s\n", ret == EINPROGRESS ? "pending" : "unreachable",
			       target[i].text);
		fflush(stdout);
	}
}

static void print_facts(const struct port *p)
{
	const uint8_t *m = p->mac.octet;

	printf("mac %02x:%02x:%02x:%02x:%02x:%02x mtu %u link %d addresses", m[0], m[1], m[2], m[3],
	       m[4], m[5], p->mtu, p->link_up);
	for (uint32_t i = 0; i < p->addresses; i++) {
		char text[64];
		bool v4 = gid_is_ipv4(&p->address[i].gid);

		inet_ntop(v4 ? AF_INET : AF_INET6, p->address[i].gid.octet + (v4 ? 12 : 0), text,
			  sizeof(text));
		printf(" %s/%u", text, p->address[i].prefix);
	}
	printf("\n");
	fflush(stdout);
}

/* Waits for the bell, the end of standard input, or 20 ms; false at the end of standard input. */
static bool wait_a_little(struct port *p)
{
	struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
				 { .fd = p->ops->bell_fd(p, 0), .events = POLLIN } };

	poll(fds, 2, 20);
	if (fds[1].revents != 0)
		printf("bell\n");
	p->ops->bell_drain(p, 0);
	return fds[0].revents == 0;
}

static void serve(struct port *p, struct neighbour_table *t, struct target *target, uint32_t n)
{
	nanotime end_at = now() + PATIENCE;

	do {
		receive(p, t);
		resolve(t, target, n);
		neighbour_tick(t, now(), &out);
		send_all(p);
		if (p->ops->refresh(p))
			print_facts(p);
	} while (wait_a_little(p) && now() < end_at);
}

static struct port *open_port(const char *kind, const char *name)
{
	struct port *p;
	char why[256];

	if (strncmp(kind, "netdev", strlen("netdev")) == 0) {
		struct netdev_options o = { .iface = name,
					    .driver = strcmp(kind, "netdev") == 0 ? NETDEV_AF_PACKET
										  : NETDEV_AF_XDP,
					    .queues = 1,
					    .socket = SOCKET_ID_ANY };

		if (!netdev_check(&o, why, sizeof(why)))
			die(why);
		o.pool = pool = netdev_pool(&o, "frames", 2047, 0);
		p = pool == NULL ? NULL : netdev_open(&o, why, sizeof(why));
	} else {
		uint32_t octets = MAX_OF(ethdev_buffer_octets(name, 1500), 2048);

		pool = ethdev_pool(name, "frames", 2047, 0,
				   (uint16_t)(octets + RTE_PKTMBUF_HEADROOM));
		p = pool == NULL ? NULL
				 : ethdev_open(&(struct ethdev_options){ .name = name,
									 .queues = 1,
									 .pool = pool,
									 .socket = SOCKET_ID_ANY },
					       why, sizeof(why));
	}
	if (p == NULL)
		die(pool == NULL ? rte_strerror(rte_errno) : why);
	return p;
}

/* Besides the groups that the kernel has itself. */
static void hear(struct port *p)
{
	static const struct mac group = { { 0x01, 0, 0x5e, 0x11, 0x22, 0x33 } };

	p->ops->hear(p, &(struct port_hears){ .group = &group, .groups = 1 });
	printf("hears %s\n", p->hears_all == NULL ? "one group" : p->hears_all);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv);
	struct neighbour_address address[LIMIT_GIDS];
	struct target target[TARGETS];
	struct neighbour_table *t;
	struct port *p;
	uint32_t n;

	if (used < 0)
		die("EAL");
	argc -= used + 1;
	argv += used + 1;
	if (argc < 3)
		die("usage");
	p = open_port(argv[0], argv[1]);
	t = neighbour_table_new(&p->mac, 0, p->kernel_answers ? p->ifindex : 0);
	if (t == NULL)
		die("neighbours");
	if (!p->kernel_answers)
		neighbour_set_addresses(t, address, read_addresses(argv[2], address));
	n = read_targets(argv[argc - 1], target);
	print_facts(p);
	if (strcmp(argv[0], "netdev_xdp_wide") == 0)
		p->ops->bell_widen(p, true);
	if (p->kernel_answers)
		hear(p);
	neighbour_announce(t, &out);
	serve(p, t, target, n);
	printf("dropped %llu own frames\n",
	       (unsigned long long)ethdev_dropped(p, REASON_SOURCE_OWN));
	neighbour_table_free(t);
	p->ops->close(p);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return 0;
}
