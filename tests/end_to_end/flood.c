/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small UDP packets to port 9, as fast as one core sends them, until it is killed:
 *	flood INTERFACE DESTINATION-MAC SOURCE-IPV4 DESTINATION-IPV4
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH	64
#define PAYLOAD 18

struct frame {
	struct ethhdr ether;
	struct iphdr ip;
	struct udphdr udp;
	uint8_t payload[PAYLOAD];
} __attribute__((packed));

static void die(const char *what)
{
	fprintf(stderr, "flood: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void fill(struct frame *f, char **argv)
{
	uint16_t word[sizeof(f->ip) / 2];
	uint32_t sum = 0;

	memset(f, 0, sizeof(*f));
	if (sscanf(argv[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &f->ether.h_dest[0],
		   &f->ether.h_dest[1], &f->ether.h_dest[2], &f->ether.h_dest[3],
		   &f->ether.h_dest[4], &f->ether.h_dest[5]) != 6)
		die("MAC address");
	f->ether.h_source[0] = 2;
	f->ether.h_proto = htons(ETH_P_IP);
	f->ip.version = 4;
	f->ip.ihl = 5;
	f->ip.tot_len = htons(sizeof(f->ip) + sizeof(f->udp) + PAYLOAD);
	f->ip.ttl = 64;
	f->ip.protocol = IPPROTO_UDP;
	f->ip.saddr = inet_addr(argv[3]);
	f->ip.daddr = inet_addr(argv[4]);
	memcpy(word, (uint8_t *)f + sizeof(f->ether), sizeof(word));
	for (unsigned int i = 0; i < sizeof(f->ip) / 2; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	f->ip.check = (uint16_t) ~(sum + (sum >> 16));
	f->udp.source = f->udp.dest = htons(9);
	f->udp.len = htons(sizeof(f->udp) + PAYLOAD);
}

int main(int argc, char **argv)
{
	static struct mmsghdr message[BATCH];
	static struct iovec part[BATCH];
	static struct frame frame;
	struct sockaddr_ll at = { .sll_family = AF_PACKET };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;

	if (fd < 0 || argc != 5)
		die(argc != 5 ? "arguments" : "socket");
	at.sll_ifindex = (int)if_nametoindex(argv[1]);
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
		die("bind");
	fill(&frame, argv);
	for (int i = 0; i < BATCH; i++) {
		part[i] = (struct iovec){ &frame, sizeof(frame) };
		message[i].msg_hdr = (struct msghdr){ .msg_iov = &part[i], .msg_iovlen = 1 };
	}
	puts("flooding");
	fflush(stdout);
	while (sendmmsg(fd, message, BATCH, 0) > 0 || errno == ENOBUFS || errno == EAGAIN)
		;
	die("sendmmsg");
}
