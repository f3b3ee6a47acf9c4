/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce perf --server: the other end of what clients measure, one client after another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "load.h"
#include "options.h"
#include "wire.h"

#define HELLO_LIMIT 5u /* seconds in which a client must say what it wants */
#define LOOK_EVERY  1024u /* turns between two looks at the channel */

struct server {
	const struct perf_options *options;
	struct wire_engine engine;
	int listener;
};

struct session {
	struct server *server;
	int fd;
	struct perf_options options; /* as the client asked */
	struct perf_pair pair; /* only b is ours */
	uint32_t measured;
};

/* ---- the beginning ---- */

/* NULL, or what is wrong with what the client asks for. */
static const char *hello_refused(const struct channel_hello *h, const struct wire_engine *e)
{
	if (h->magic != CHANNEL_MAGIC)
		return "another version of uroce perf, or another byte order";
	if (h->qps < 1 || h->qps > PERF_QPS || h->depth < 1 || h->depth > PERF_DEPTH ||
	    h->octets < 1 || h->octets > PERF_OCTETS || h->mtu < 256 || h->mtu > 4096 ||
	    (h->mtu & (h->mtu - 1)) != 0 || h->latency > 1 || h->preferred > FAMILY_IPV6)
		return "impossible numbers";
	if ((h->families & wire_families(e)) == 0)
		return "the engines have no addresses of the same family (IPv4 or IPv6)";
	return NULL;
}

static bool answer(struct session *s, const struct channel_hello *h, const char *refused)
{
	struct channel_answer a = { .magic = CHANNEL_MAGIC, .failed = refused != NULL };
	uint32_t common = h->families & wire_families(&s->server->engine);

	if (refused != NULL) {
		snprintf(a.text, sizeof(a.text), "%s", refused);
		fprintf(stderr, "uroce perf: a client was refused: %s\n", refused);
	} else {
		a.family = (common & h->preferred) != 0	 ? h->preferred
			   : (common & FAMILY_IPV4) != 0 ? FAMILY_IPV4
							 : FAMILY_IPV6;
		a.mtu = MIN_OF(h->mtu, wire_mtu(&s->server->engine));
		engine_describe(&s->server->engine.device, a.text, sizeof(a.text));
		s->pair.b.gid = wire_address(&s->server->engine, a.family);
		s->options.mtu = a.mtu;
	}
	return channel_put(s->fd, &a, sizeof(a)) && refused == NULL;
}

static void adopt(struct session *s, const struct channel_hello *h)
{
	s->options = (struct perf_options){ .sizes = 1,
					    .size = { h->octets },
					    .qps = h->qps,
					    .depth = h->depth,
					    .latency = h->latency != 0 };
	s->pair = (struct perf_pair){ .options = &s->options, .far = true };
}

static int connect_all(struct session *s, const uint32_t *qpn)
{
	for (uint32_t i = 0; i < s->options.qps; i++)
		if (qp_connect(&s->pair.b, i, qpn[i], s->options.mtu) != 0 ||
		    receives_post(&s->pair, i, s->options.depth) != 0)
			return 1;
	return 0;
}

/* Objects, and the two ends of each queue pair. 0: measurements may begin. */
static int begin(struct session *s)
{
	struct channel_reply r = { 0 };
	struct channel_hello h;
	uint32_t *qpn;
	int failed = 1;

	channel_limit(s->fd, HELLO_LIMIT);
	if (!channel_get(s->fd, &h, sizeof(h)))
		return 1;
	adopt(s, &h);
	if (!answer(s, &h, hello_refused(&h, &s->server->engine)))
		return 1;
	qpn = calloc(h.qps, sizeof(*qpn));
	if (qpn != NULL && side_open(&s->pair.b, s->server->engine.device.name, &s->options) == 0 &&
	    wire_tell(s->fd, &s->pair.b, h.qps) == 0 &&
	    wire_hear(s->fd, &s->pair.b, qpn, h.qps) == 0)
		failed = connect_all(s, qpn);
	free(qpn);
	r.failed = failed != 0;
	if (!channel_put(s->fd, &r, sizeof(r)))
		return 1;
	channel_limit(s->fd, 0);
	return failed;
}

/* ---- measurements ---- */

/* Answers each round of the ping-pong with one of its own, until the client says something. */
static int echo(struct session *s, uint32_t size)
{
	struct perf_side *b = &s->pair.b;
	const uint8_t *there = b->buffer + size - 1;
	uint8_t mark = 1;

	for (uint32_t turns = 1; turns % LOOK_EVERY != 0 || !channel_readable(s->fd); turns++) {
		if (completions_take(b) != 0)
			return 1;
		/* atomic: the engine writes it */
		if (__atomic_load_n(there, __ATOMIC_ACQUIRE) != mark)
			continue;
		b->buffer[2 * size - 1] = mark++;
		if (write_once(b, size, size) != 0)
			return 1;
	}
	return 0;
}

static int receive(struct session *s)
{
	int n = 0;

	for (uint32_t turns = 1; n >= 0; turns++) {
		n = receives_turn(&s->pair);
		if (n == 0 && turns % LOOK_EVERY == 0 && channel_readable(s->fd))
			return 0;
	}
	return 1;
}

static int measure(struct session *s, const struct channel_command *c)
{
	struct channel_reply r = { 0 };
	struct channel_command end;
	int failed = 0;

	if (c->size < 1 || c->size > s->options.size[0] || c->operation >= PERF_OPERATIONS)
		return 1;
	s->pair.b.buffer[c->size - 1] = 0; /* no mark of an earlier ping-pong */
	wire_engine_count(&s->server->engine, &r);
	if (!channel_put(s->fd, &r, sizeof(r)))
		return 1;
	if (s->options.latency)
		failed = echo(s, c->size);
	else if (c->operation == PERF_SEND)
		failed = receive(s);
	if (!channel_get(s->fd, &end, sizeof(end)) || end.what != CHANNEL_END)
		return 1;
	r.failed = failed != 0;
	wire_engine_count(&s->server->engine, &r);
	s->measured++;
	return !channel_put(s->fd, &r, sizeof(r)) || failed;
}

/* Counts what the kernel's TCP brings. */
static int stream(struct session *s)
{
	static char octets[1 << 18];
	struct channel_reply r = { 0 };
	char who[64];
	ssize_t n;
	int fd;

	if (!channel_put(s->fd, &r, sizeof(r)))
		return 1;
	fd = channel_accept(s->server->listener, HELLO_LIMIT, who, sizeof(who));
	if (fd < 0)
		return 1;
	channel_limit(fd, HELLO_LIMIT);
	while ((n = read(fd, octets, sizeof(octets))) > 0)
		r.octets += (uint64_t)n;
	close(fd);
	return !channel_put(s->fd, &r, sizeof(r));
}

/* True: the client has left in peace. */
static bool serve(struct session *s)
{
	struct channel_command c;
	int failed = begin(s);

	while (failed == 0) {
		if (!channel_get(s->fd, &c, sizeof(c)))
			return true;
		failed = c.what == CHANNEL_BEGIN ? measure(s, &c)
			 : c.what == CHANNEL_TCP ? stream(s)
						 : 1;
	}
	return false;
}

static bool next_client(struct server *server)
{
	static struct session s;
	char who[64];
	bool well;

	memset(&s, 0, sizeof(s));
	s.server = server;
	s.fd = channel_accept(server->listener, 0, who, sizeof(who));
	if (s.fd < 0)
		return false;
	well = serve(&s);
	close(s.fd);
	side_close(&s.pair.b, s.options.qps);
	printf("%s: %u measurements%s\n", who, s.measured, well ? "" : ", not ended well");
	fflush(stdout);
	return well;
}

int wire_server(const struct perf_options *o)
{
	struct server server = { .options = o };
	uint16_t port = o->tcp_port;
	char text[512];
	bool well;

	if (wire_engine_find(&server.engine, o->socket) != 0)
		return 1;
	server.listener = channel_listen(&port, text, sizeof(text));
	if (server.listener < 0) {
		fprintf(stderr, "uroce perf: %s\n", text);
		return 1;
	}
	engine_describe(&server.engine.device, text, sizeof(text));
	printf("%s: waiting for clients on TCP port %u\n", text, port);
	fflush(stdout);
	do
		well = next_client(&server);
	while (!o->once);
	return well ? 0 : 1;
}
