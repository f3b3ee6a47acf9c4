/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets forwarders write their flows into its memory, and prints them when the last one has left. It
 * is an ordinary verbs program: it runs on uroce (`uroce run -- collector 7471`) or on a network card.
 *
 *	collector SERVICE [FORWARDERS]
 *
 * While forwarders write, its processor does nothing.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "flows.h"

#define FORWARDERS 16

static struct {
	struct flow_totals totals;
	struct flow table[FORWARDERS][FLOWS];
} memory __attribute__((aligned(4096)));

static struct ibv_mr *mr; /* of `memory`, for all forwarders */
static struct ibv_pd *pd;
static int joined, left;

static bool accept_forwarder(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct flow_place place;
	struct rdma_conn_param parameters = { .private_data = &place,
					      .private_data_len = sizeof(place),
					      .responder_resources = 3 };

	if (pd == NULL)
		pd = ibv_alloc_pd(id->verbs);
	if (pd != NULL && mr == NULL)
		mr = ibv_reg_mr(pd, &memory, sizeof(memory),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					IBV_ACCESS_REMOTE_ATOMIC);
	if (mr == NULL || joined == FORWARDERS || rdma_create_qp(id, pd, &init) != 0)
		return false;
	place = (struct flow_place){ .totals = htobe64((uintptr_t)&memory.totals),
				     .table = htobe64((uintptr_t)memory.table[joined]),
				     .rkey = htobe32(mr->rkey),
				     .flows = htobe32(FLOWS) };
	if (rdma_accept(id, &parameters) != 0)
		return false;
	joined++;
	return true;
}

static void let_go(struct rdma_cm_id *id)
{
	rdma_disconnect(id);
	rdma_destroy_qp(id);
	left++;
}

static void serve(struct rdma_event_channel *channel, int forwarders)
{
	struct rdma_cm_event *event;

	while (left < forwarders && rdma_get_cm_event(channel, &event) == 0) {
		enum rdma_cm_event_type what = event->event;
		struct rdma_cm_id *id = event->id;

		if (what == RDMA_CM_EVENT_CONNECT_REQUEST && !accept_forwarder(id))
			rdma_reject(id, NULL, 0);
		if (what == RDMA_CM_EVENT_DISCONNECTED)
			let_go(id);
		rdma_ack_cm_event(event);
		if (what == RDMA_CM_EVENT_DISCONNECTED)
			rdma_destroy_id(id);
	}
}

static void print_flow(const struct flow *f)
{
	char from[INET_ADDRSTRLEN], to[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &f->key.source, from, sizeof(from));
	inet_ntop(AF_INET, &f->key.destination, to, sizeof(to));
	printf("%s:%u -> %s:%u protocol %u: %llu packets, %llu octets\n", from,
	       ntohs(f->key.source_port), to, ntohs(f->key.destination_port), f->key.protocol,
	       (unsigned long long)f->packets, (unsigned long long)f->octets);
}

static void print_all(void)
{
	for (int i = 0; i < joined; i++)
		for (uint32_t j = 0; j < FLOWS && memory.table[i][j].packets != 0; j++)
			print_flow(&memory.table[i][j]);
	printf("total: %llu packets, %llu octets\n", (unsigned long long)memory.totals.packets,
	       (unsigned long long)memory.totals.octets);
}

/* -1, and a line about it: the value is wrong. */
static int number(const char *name, const char *text, int most)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end != text && *end == '\0' && n >= 1 && n <= most)
		return (int)n;
	fprintf(stderr, "collector: %s %s: must be in 1 .. %d\n", name, text, most);
	return -1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int service, forwarders;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "collector: %d words: must be SERVICE [FORWARDERS]\n", argc - 1);
		return 2;
	}
	service = number("SERVICE", argv[1], 65535);
	forwarders = service < 0 || argc < 3 ? 1 : number("FORWARDERS", argv[2], FORWARDERS);
	if (service < 0 || forwarders < 0)
		return 2;
	any.sin_port = htons((uint16_t)service);
	channel = rdma_create_event_channel();
	if (channel == NULL || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_bind_addr(listener, (struct sockaddr *)&any) != 0 ||
	    rdma_listen(listener, FORWARDERS) != 0) {
		perror("cannot listen");
		return EXIT_FAILURE;
	}
	printf("listening\n");
	fflush(stdout);
	serve(channel, forwarders);
	print_all();
	rdma_destroy_id(listener);
	if (mr != NULL)
		ibv_dereg_mr(mr);
	if (pd != NULL)
		ibv_dealloc_pd(pd);
	rdma_destroy_event_channel(channel);
	return EXIT_SUCCESS;
}
