/* SPDX-License-Identifier: BSD-3-Clause */
#include "counters.h"

#include <inttypes.h>
#include <string.h>

#define OWN(field, what)                                               \
	{                                                              \
#field, what, offsetof(struct reply_statistics, field) \
	}

const struct counter own_counters[] = {
	OWN(rx_packets, "packets received"),
	OWN(rx_octets, "octets received"),
	OWN(tx_packets, "packets sent"),
	OWN(tx_octets, "octets sent"),
	OWN(retransmitted, "packets retransmitted"),
	OWN(timeouts, "acknowledgement timeouts"),
	OWN(rnr_naks, "receiver-not-ready NAKs"),
	OWN(ecn_marked, "packets that the network marked (CE)"),
	OWN(cnps_sent, "congestion notifications sent"),
	OWN(crossed, "packets that arrived at another lcore than their queue pair's"),
	OWN(polls, "polls of the lcores"),
	OWN(idle_polls, "polls that found nothing to do"),
	OWN(kernel_given, "frames given to the kernel's interface"),
	OWN(kernel_taken, "frames that the kernel sent through the port"),
	{ NULL },
};

#define FIELD(name, what, field)                                      \
	{                                                             \
#name, what, offsetof(struct reply_statistics, field) \
	}
#define SUM(name, what, ...)                           \
	{                                              \
#name, what, .reason = { __VA_ARGS__ } \
	}

const struct counter memory_counters[] = {
	OWN(mrs_made, "regions and windows made"),
	OWN(mrs_ended, "regions and windows taken away"),
	{ NULL },
};

const enum reason memory_reasons[] = {
	REASON_KEY_UNKNOWN,  REASON_KEY_PD,	    REASON_KEY_ACCESS,	 REASON_KEY_RANGE,
	REASON_MEMORY_FAULT, REASON_RECEIVE_MEMORY, REASON_ACCESS_FLAGS, REASON_INVALIDATE_KEY,
	REASON_WINDOW_BOUND, REASON_NONE,
};

/* Names that mean the same in rxe (rxe_hw_counters.c) or mlx5 (counters.c). */
const struct counter linux_counters[] = {
	FIELD(rcvd_pkts, "packets received", rx_packets),
	FIELD(sent_pkts, "packets sent", tx_packets),
	FIELD(rdma_sends, "SEND requests of programs", sends),
	FIELD(rdma_recvs, "receive requests that completed with success", receives),
	FIELD(rx_write_requests, "RDMA WRITEs that peers began", writes_begun),
	FIELD(rx_read_requests, "RDMA READs that peers began", reads_begun),
	FIELD(rx_atomic_requests, "atomics of peers: compare and swap, fetch and add",
	      atomics_begun),
	SUM(duplicate_request, "requests that were executed before", REASON_DUPLICATE,
	    REASON_DUPLICATE_UNKNOWN),
	SUM(out_of_seq_request, "requests behind a missing packet (rxe)", REASON_PSN_AHEAD,
	    REASON_PSN_AHEAD_AGAIN),
	SUM(out_of_sequence, "requests behind a missing packet (mlx5)", REASON_PSN_AHEAD,
	    REASON_PSN_AHEAD_AGAIN),
	SUM(rcvd_seq_err, "NAKs received for a missing packet (rxe)", REASON_NAK_SEQUENCE),
	SUM(packet_seq_err, "NAKs received for a missing packet (mlx5)", REASON_NAK_SEQUENCE),
	SUM(implied_nak_seq_err, "responses whose loss a later one shows", REASON_ACK_IMPLIED_NAK),
	FIELD(local_ack_timeout_err, "acknowledgement timeouts", timeouts),
	SUM(send_rnr_err, "requests that found no receive request (rxe)", REASON_RECEIVE_NOT_READY),
	SUM(out_of_buffer, "requests that found no receive request (mlx5)",
	    REASON_RECEIVE_NOT_READY),
	SUM(rcvd_rnr_err, "receiver-not-ready NAKs received (rxe)", REASON_NAK_RNR),
	SUM(rnr_nak_retry_err, "receiver-not-ready NAKs received (mlx5)", REASON_NAK_RNR),
	SUM(retry_exceeded_err, "requests that failed after all retries (rxe)",
	    REASON_RETRIES_EXHAUSTED),
	SUM(req_transport_retries_exceeded, "requests that failed after all retries (mlx5)",
	    REASON_RETRIES_EXHAUSTED),
	SUM(retry_rnr_exceeded_err, "requests that failed because the peer never got ready (rxe)",
	    REASON_RNR_RETRIES_EXHAUSTED),
	SUM(req_rnr_retries_exceeded,
	    "requests that failed because the peer never got ready (mlx5)",
	    REASON_RNR_RETRIES_EXHAUSTED),
	SUM(req_remote_invalid_request, "requests that the peer called invalid",
	    REASON_NAK_INVALID_REQUEST),
	SUM(req_remote_access_errors, "requests whose memory the peer refused",
	    REASON_NAK_REMOTE_ACCESS),
	FIELD(resp_remote_access_errors, "requests of peers that were refused memory",
	      access_refused),
	SUM(resp_local_length_error, "messages longer than the receive request",
	    REASON_LENGTH_RECEIVE),
	FIELD(req_cqe_error, "requests that completed in error", requests_failed),
	FIELD(req_cqe_flush_error, "requests that completed as flushed", requests_flushed),
	FIELD(resp_cqe_error, "receive requests that completed in error", receives_failed),
	FIELD(resp_cqe_flush_error, "receive requests that completed as flushed", receives_flushed),
	SUM(rx_icrc_encapsulated, "packets with a wrong invariant CRC", REASON_ICRC),
	FIELD(np_ecn_marked_roce_packets, "packets that the network marked", ecn_marked),
	FIELD(np_cnp_sent, "congestion notifications sent", cnps_sent),
	SUM(rp_cnp_handled, "congestion notifications received", REASON_CNP_RECEIVED),
	SUM(send_err, "packets that the port did not take", REASON_TX_FULL),
	FIELD(link_downed, "times that the port lost its link", links_lost),
	{ NULL },
};

uint64_t counter_value(const struct reply_statistics *s, const struct counter *c)
{
	uint64_t v = 0;

	if (c->offset != 0)
		memcpy(&v, (const char *)s + c->offset, sizeof(v));
	else
		for (int i = 0; i < COUNTER_REASONS; i++)
			v += c->reason[i] != REASON_NONE ? s->by_reason[c->reason[i]] : 0;
	return v;
}

uint64_t counter_objects(const struct reply_statistics *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < STATISTICS_KINDS; i++)
		n += s->objects[i];
	return n;
}

/* From the first number to the last, all of them only grow. */
void counters_since(struct reply_statistics *now, const struct reply_statistics *before)
{
	const size_t first = offsetof(struct reply_statistics, rx_packets);
	const size_t end = offsetof(struct reply_statistics, clients);
	uint64_t a, b;

	for (size_t at = first; at < end; at += sizeof(a)) {
		memcpy(&a, (const char *)now + at, sizeof(a));
		memcpy(&b, (const char *)before + at, sizeof(b));
		a -= b;
		memcpy((char *)now + at, &a, sizeof(a));
	}
	for (unsigned int r = 0; r < REASON_COUNT; r++)
		now->by_reason[r] -= before->by_reason[r];
}

void counters_print(FILE *out, const struct reply_statistics *s, bool all)
{
	fprintf(out, "%u programs, %u queue pairs, %u completion queues, %u memory regions\n\n",
		s->clients, s->qps, s->cqs, s->mrs);
	for (const struct counter *c = own_counters; c->name != NULL; c++)
		fprintf(out, "%16" PRIu64 "  %s\n", counter_value(s, c), c->what);
	fputc('\n', out);
	for (unsigned int r = 1; r < REASON_COUNT; r++)
		if (all || s->by_reason[r] != 0)
			fprintf(out, "%16" PRIu64 "  %-22s %3u  %s\n", s->by_reason[r],
				reason_name((enum reason)r), r, reason_sentence((enum reason)r));
}

void counters_print_memory(FILE *out, const struct reply_statistics *s)
{
	for (const struct counter *c = memory_counters; c->name != NULL; c++)
		fprintf(out, "%16" PRIu64 "  %s\n", counter_value(s, c), c->what);
	for (const enum reason *r = memory_reasons; *r != REASON_NONE; r++)
		fprintf(out, "%16" PRIu64 "  %s\n", s->by_reason[*r], reason_sentence(*r));
}

/* ---- Prometheus ---- */

/* A label's value: the name of a device is a program's choice. */
static void print_label(FILE *out, const char *text)
{
	fputs("{device=\"", out);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
	}
	fputs("\"", out);
}

struct exposition {
	FILE *out;
	char device[32];
};

static void begin(const struct exposition *x, const char *name, const char *type, const char *what)
{
	fprintf(x->out, "# HELP uroce_%s %s\n# TYPE uroce_%s %s\n", name, what, name, type);
}

static void one(const struct exposition *x, const char *name, const char *type, const char *what,
		uint64_t v)
{
	begin(x, name, type, what);
	fprintf(x->out, "uroce_%s", name);
	print_label(x->out, x->device);
	fprintf(x->out, "} %" PRIu64 "\n", v);
}

static void print_counters(const struct exposition *x, const struct counter *c,
			   const struct reply_statistics *s)
{
	char name[64];

	for (; c->name != NULL; c++) {
		/* Under Linux's name already. */
		if (strcmp(c->name, "rx_packets") == 0 || strcmp(c->name, "tx_packets") == 0)
			continue;
		snprintf(name, sizeof(name), "%s_total", c->name);
		one(x, name, "counter", c->what, counter_value(s, c));
	}
}

static void print_reasons(const struct exposition *x, const struct reply_statistics *s)
{
	begin(x, "reason_total", "counter",
	      "what was dropped, refused or failed, by the reasons of uroce stat --all");
	for (unsigned int r = 1; r < REASON_COUNT; r++) {
		fputs("uroce_reason_total", x->out);
		print_label(x->out, x->device);
		fprintf(x->out, ",reason=\"%s\"} %" PRIu64 "\n", reason_name((enum reason)r),
			s->by_reason[r]);
	}
}

void counters_print_prometheus(FILE *out, const struct reply_device *d,
			       const struct reply_statistics *s)
{
	struct exposition x = { .out = out };

	snprintf(x.device, sizeof(x.device), "%.31s", d->name);
	one(&x, "port_active", "gauge", "whether the port has a link", d->port_state == 4);
	one(&x, "lcores", "gauge", "polling threads", d->lcores);
	one(&x, "programs", "gauge", "programs attached", s->clients);
	one(&x, "queue_pairs", "gauge", "queue pairs", s->qps);
	one(&x, "completion_queues", "gauge", "completion queues", s->cqs);
	one(&x, "memory_regions", "gauge", "memory regions", s->mrs);
	one(&x, "objects", "gauge", "objects of all kinds", counter_objects(s));
	one(&x, "connections", "gauge", "connections of rdma_cm, those at rest included",
	    s->connections);
	one(&x, "queue_pair_memory_octets", "gauge", "the engine's memory that queue pairs use",
	    s->qp_memory);
	print_counters(&x, linux_counters, s);
	print_counters(&x, own_counters, s);
	print_counters(&x, memory_counters, s);
	print_reasons(&x, s);
}
