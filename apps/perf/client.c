/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce perf --peer: the measurements of load.c towards another machine, beside what its wire, the
 * kernel's TCP and a core can do.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "load.h"
#include "report.h"
#include "wire.h"

#define PATIENCE   20u /* seconds for a reply of the server */
#define TCP_OCTETS (1u << 18) /* of one write */
#define LARGE	   1024u /* octets: from here on bandwidth counts, below messages */

struct client {
	struct perf_options *options;
	struct wire_engine engine;
	struct limit_result limits; /* of a core; all 0: not measured */
	struct channel_answer answer;
	struct perf_pair pair; /* only a is ours */
	int fd;
	double rate; /* of the wire, bits/s; 0: unknown */
	double tcp; /* bits/s; 0: not measured */
	struct json json;
};

static int lost(void)
{
	fputs("uroce perf: the server has gone; its stderr may say why\n", stderr);
	return 1;
}

/* ---- the beginning ---- */

static uint32_t largest(const struct perf_options *o)
{
	uint32_t octets = 8;

	for (uint32_t i = 0; i < o->sizes; i++)
		octets = MAX_OF(octets, o->size[i]);
	return octets;
}

static int greet(struct client *c)
{
	const struct perf_options *o = c->options;
	struct channel_hello h = { .magic = CHANNEL_MAGIC,
				   .families = wire_families(&c->engine),
				   .mtu = MIN_OF(o->mtu, wire_mtu(&c->engine)),
				   .qps = o->qps,
				   .depth = o->depth,
				   .octets = largest(o),
				   .latency = o->latency,
				   .preferred = channel_family(c->fd) };

	if (!channel_put(c->fd, &h, sizeof(h)) ||
	    !channel_get(c->fd, &c->answer, sizeof(c->answer)))
		return lost();
	if (c->answer.magic != CHANNEL_MAGIC) {
		fputs("uroce perf: the other end is not a `uroce perf --server` of this version\n",
		      stderr);
		return 1;
	}
	c->answer.text[sizeof(c->answer.text) - 1] = '\0';
	if (c->answer.failed != 0) {
		fprintf(stderr, "uroce perf: the server refuses: %s\n", c->answer.text);
		return 1;
	}
	c->options->mtu = c->answer.mtu;
	return 0;
}

static int connect_all(struct client *c)
{
	const struct perf_options *o = c->options;
	uint32_t *qpn = calloc(o->qps, sizeof(*qpn));
	struct perf_side *a = &c->pair.a;
	struct channel_reply r;
	int failed;

	if (qpn == NULL || wire_hear(c->fd, a, qpn, o->qps) != 0 ||
	    wire_tell(c->fd, a, o->qps) != 0) {
		free(qpn);
		return lost();
	}
	failed = 0;
	for (uint32_t i = 0; i < o->qps && failed == 0; i++)
		failed = qp_connect(a, i, qpn[i], o->mtu);
	free(qpn);
	if (failed != 0)
		return 1;
	return !channel_get(c->fd, &r, sizeof(r)) || r.failed != 0 ? lost() : 0;
}

static int open_both(struct client *c)
{
	const struct perf_options *o = c->options;
	char why[256];

	c->fd = channel_connect(o->peer, o->tcp_port, why, sizeof(why));
	if (c->fd < 0) {
		fprintf(stderr, "uroce perf: %s\n", why);
		return 1;
	}
	channel_limit(c->fd, PATIENCE);
	if (greet(c) != 0)
		return 1;
	c->pair = (struct perf_pair){ .options = o, .far = true };
	c->pair.a.gid = wire_address(&c->engine, c->answer.family);
	if (side_open(&c->pair.a, c->engine.device.name, o) != 0)
		return 1;
	return connect_all(c);
}

/* Measures a core before there is traffic. EAL pins this thread; the rest does not want that. */
static int measure_core(struct client *c)
{
	cpu_set_t cpus;
	int failed;

	if (!c->options->limits)
		return 0;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	failed = pair_eal(c->options) != 0 || limits_run(c->options, &c->limits) != 0;
	sched_setaffinity(0, sizeof(cpus), &cpus);
	return failed;
}

/* ---- the kernel's TCP ---- */

static int tell(struct client *c, enum channel_what what, enum perf_operation operation,
		uint32_t size, uint32_t qps, struct channel_reply *r)
{
	struct channel_command command = {
		.what = what, .operation = operation, .size = size, .qps = qps
	};

	if (!channel_put(c->fd, &command, sizeof(command)) || !channel_get(c->fd, r, sizeof(*r)))
		return lost();
	return r->failed != 0 ? lost() : 0;
}

static int measure_tcp(struct client *c)
{
	static const char octets[TCP_OCTETS];
	const struct perf_options *o = c->options;
	nanotime begin, stop;
	struct channel_reply r;
	char why[256];
	int fd;

	if (!o->limits)
		return 0;
	if (tell(c, CHANNEL_TCP, 0, 0, 0, &r) != 0)
		return 1;
	fd = channel_connect(o->peer, o->tcp_port, why, sizeof(why));
	if (fd < 0)
		return lost();
	begin = time_now();
	stop = begin + (nanotime)(o->seconds * 1e9);
	while (time_now() < stop && channel_put(fd, octets, sizeof(octets)))
		;
	shutdown(fd, SHUT_WR);
	if (!channel_get(c->fd, &r, sizeof(r))) { /* the server has read all of it */
		close(fd);
		return lost();
	}
	c->tcp = (double)r.octets * 8 / ((double)(time_now() - begin) / 1e9);
	close(fd);
	return 0;
}

/* ---- figures ---- */

/* The share of polls that found work, in percent, between two looks. */
static double busy(const struct channel_reply *from, const struct channel_reply *to)
{
	uint64_t polls = to->polls - from->polls, idle = to->idle - from->idle;

	return polls > 0 ? 100 * (1 - (double)idle / (double)polls) : 0;
}

/* Counters of both engines before and after a measurement. */
struct counted {
	struct channel_reply here[2], there[2];
};

static double again(const struct counted *n)
{
	uint64_t sent = n->here[1].sent - n->here[0].sent + n->there[1].sent - n->there[0].sent;
	uint64_t twice =
		n->here[1].again - n->here[0].again + n->there[1].again - n->there[0].again;

	return sent > 0 ? (double)twice / (double)sent : 0;
}

/* How much of the wire, or of TCP, a result is; 0: not known. */
static double of_wire(const struct client *c, const struct load_result *r)
{
	double most;

	if (c->rate <= 0)
		return 0;
	most = wire_messages(c->rate, r->operation, r->size, c->options->mtu, c->answer.family);
	return (double)r->messages / r->seconds / most;
}

static double of_tcp(const struct client *c, const struct load_result *r)
{
	return c->tcp > 0 && r->size >= LARGE ? (double)r->octets * 8 / r->seconds / c->tcp : 0;
}

static void print_share(double share)
{
	if (share > 0)
		printf(" %8.1f %%", 100 * share);
	else
		printf(" %10s", "-");
}

static void load_text(const struct client *c, const struct load_result *r, const struct counted *n)
{
	printf("%-7s %9u %6u %11.4f %11.3f %8.3f %%", operation_name[r->operation], r->size, r->qps,
	       (double)r->messages / r->seconds / 1e6, (double)r->octets * 8 / r->seconds / 1e9,
	       100 * again(n));
	print_share(of_wire(c, r));
	print_share(of_tcp(c, r));
	printf(" %6.1f %% %6.1f %%\n", busy(&n->here[0], &n->here[1]),
	       busy(&n->there[0], &n->there[1]));
	fflush(stdout);
}

static void load_json(struct client *c, const struct load_result *r, const struct counted *n)
{
	struct json *j = &c->json;

	json_open(j, NULL, '{');
	json_string(j, "operation", operation_name[r->operation]);
	json_integer(j, "size", r->size);
	json_integer(j, "qps", r->qps);
	json_number(j, "sent_again", again(n));
	json_number(j, "seconds", r->seconds);
	json_integer(j, "messages", r->messages);
	json_number(j, "messages_per_s", (double)r->messages / r->seconds);
	json_number(j, "bit_per_s", (double)r->octets * 8 / r->seconds);
	if (of_wire(c, r) > 0)
		json_number(j, "ratio_to_wire", of_wire(c, r));
	if (of_tcp(c, r) > 0)
		json_number(j, "ratio_to_tcp", of_tcp(c, r));
	json_number(j, "busy_polls_percent_here", busy(&n->here[0], &n->here[1]));
	json_number(j, "busy_polls_percent_there", busy(&n->there[0], &n->there[1]));
	json_close(j, '}');
}

static int load(struct client *c, enum perf_operation op, uint32_t size, uint32_t qps)
{
	struct load_result r;
	struct counted n = { 0 };

	if (tell(c, CHANNEL_BEGIN, op, size, qps, &n.there[0]) != 0)
		return 1;
	wire_engine_count(&c->engine, &n.here[0]);
	if (load_run(&c->pair, op, size, qps, &r) != 0)
		return 1;
	wire_engine_count(&c->engine, &n.here[1]);
	if (tell(c, CHANNEL_END, op, size, qps, &n.there[1]) != 0)
		return 1;
	if (c->options->json)
		load_json(c, &r, &n);
	else
		load_text(c, &r, &n);
	return 0;
}

static int loads_of(struct client *c, enum perf_operation op)
{
	const struct perf_options *o = c->options;

	for (uint32_t s = 0; s < (op == PERF_ATOMIC ? 1 : o->sizes); s++)
		for (uint32_t i = 0; i < o->qps_count; i++)
			if (load(c, op, op == PERF_ATOMIC ? 8 : o->size[s], o->qps_of[i]) != 0)
				return 1;
	return 0;
}

static int loads(struct client *c)
{
	const struct perf_options *o = c->options;

	if (o->json)
		json_open(&c->json, "rates", '[');
	else
		printf("op           octets    qps  M message/s      Gbit/s      again    of wire     "
		       "of TCP  busy polls, there\n");
	for (uint32_t op = 0; op < PERF_OPERATIONS; op++)
		if (o->operation[op] && loads_of(c, op) != 0)
			return 1;
	if (o->json)
		json_close(&c->json, ']');
	return 0;
}

static int latencies(struct client *c)
{
	const struct perf_options *o = c->options;
	const struct perf_flaws none = { .loss = -1, .reordered = -1 };
	static struct histogram h;
	struct channel_reply r;

	if (o->json)
		json_open(&c->json, "half_round_trips", '[');
	else
		latency_head(o);
	for (uint32_t s = 0; s < o->sizes; s++) {
		if (tell(c, CHANNEL_BEGIN, PERF_WRITE, o->size[s], 1, &r) != 0 ||
		    latency_run(&c->pair, o->size[s], &h) != 0 ||
		    tell(c, CHANNEL_END, PERF_WRITE, o->size[s], 1, &r) != 0)
			return 1;
		if (o->json)
			latency_json(&c->json, o->size[s], &none, &h);
		else
			latency_text(o->size[s], &none, &h);
	}
	if (o->json)
		json_close(&c->json, ']');
	return 0;
}

/* ---- what stands before the figures ---- */

static void head_text(const struct client *c)
{
	const struct perf_options *o = c->options;
	char text[512];

	engine_describe(&c->engine.device, text, sizeof(text));
	printf("here   %s\nthere  %s, at %s\npath   IB MTU %u, IPv%u\n", text, c->answer.text,
	       o->peer, o->mtu, c->answer.family == FAMILY_IPV6 ? 6 : 4);
	if (c->rate > 0)
		printf("wire   %.1f Gbit/s%s: at most %.2f Gbit/s of payload, or %.2f M/s of 8 octets, in WRITEs\n",
		       c->rate / 1e9, o->link > 0 ? "" : " as the port says",
		       wire_messages(c->rate, PERF_WRITE, 65536, o->mtu, c->answer.family) * 65536 *
			       8 / 1e9,
		       wire_messages(c->rate, PERF_WRITE, 8, o->mtu, c->answer.family) / 1e6);
	else
		puts("wire   the port does not say how fast it is: --link GBIT/S");
	if (c->tcp > 0)
		printf("TCP    %.2f Gbit/s of the kernel's, one stream to %s\n", c->tcp / 1e9,
		       o->peer);
	putchar('\n');
	if (o->limits)
		limits_text(&c->limits);
	fflush(stdout);
}

static void head_json(struct client *c)
{
	const struct perf_options *o = c->options;
	struct json *j = &c->json;

	json_open(j, NULL, '{');
	json_string(j, "peer", o->peer);
	json_string(j, "device_there", c->answer.text);
	json_integer(j, "qps", o->qps);
	json_integer(j, "depth", o->depth);
	json_integer(j, "post", o->post);
	json_integer(j, "mtu", o->mtu);
	json_integer(j, "ip_version", c->answer.family == FAMILY_IPV6 ? 6 : 4);
	json_number(j, "wire_bit_per_s", c->rate);
	json_number(j, "tcp_bit_per_s", c->tcp);
	if (o->limits)
		limits_json(j, &c->limits);
}

static int measure_all(struct client *c)
{
	int failed;

	if (open_both(c) != 0 || measure_tcp(c) != 0)
		return 1;
	c->rate = c->options->link > 0 ? c->options->link * 1e9 : wire_rate(&c->engine);
	if (c->options->json)
		head_json(c);
	else
		head_text(c);
	failed = c->options->latency ? latencies(c) : loads(c);
	if (c->options->json && !failed)
		json_close(&c->json, '}');
	return failed;
}

int wire_client(struct perf_options *o)
{
	static struct client c;
	int failed;

	c = (struct client){ .options = o, .fd = -1, .json = { .out = stdout } };
	if (wire_engine_find(&c.engine, o->socket) != 0 || measure_core(&c) != 0)
		return 1;
	failed = measure_all(&c);
	if (c.fd >= 0)
		close(c.fd);
	side_close(&c.pair.a, o->qps);
	close(c.engine.fd);
	return failed;
}
