/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two of these programs load queue pairs of all types between them, and check every octet, the order
 * of all messages and completions, what READs bring back and what atomics find. Beside that each
 * registers memory and forks. It is an unmodified verbs program: `uroce run` runs it.
 *
 *	soak-load server|client SOCKET [option=value]...
 *
 * Its exit status is 0 if both sides agree on all that was sent, 3 if the other program or an engine
 * went away and all that was posted ended nevertheless, 1 if a check failed: a line says which one.
 * Options: name=TEXT seconds=N seed=N rate=N (operations a second) gid=N orderly=0|1 fork_ms=N
 * register_ms=N rc=N rc_srq=N uc=N ud=N xrc=N (queue pairs).
 */
#include "soak.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BURST	    64
#define BURST_LEAST 24 /* operations that begin at once, so that engines may sleep in between */
#define WAIT_MS	    10
#define STATUS_LOST 3

const char *const kind_names[KINDS] = { "rc", "rc_srq", "uc", "ud", "xrc" };

/* What each side reports of its lanes when everything that it sent is complete. */
struct counts {
	uint64_t sent, counted;
};

enum phase {
	PHASE_LOAD,
	PHASE_DRAIN,
	PHASE_COUNTS,
	PHASE_DONE
};

static bool has_counts, has_done, has_stop; /* of the other side */

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("FAILED: ");
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

void lane_die(const struct soak *s, const struct lane *l, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	die("%s, lane %u (%s, queue pair %u to %u, seed %llu): %s", s->o.name, l->index,
	    kind_names[l->kind], l->qp->qp_num, l->far.qpn, (unsigned long long)s->o.seed, text);
}

double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- options ---- */

static void read_option(struct options *o, const char *word)
{
	const struct {
		const char *name;
		uint32_t *value;
	} numbers[] = { { "rate", &o->rate },		{ "gid", &o->gid_index },
			{ "fork_ms", &o->fork_ms },	{ "register_ms", &o->register_ms },
			{ "rc", &o->counts[KIND_RC] },	{ "rc_srq", &o->counts[KIND_RC_SRQ] },
			{ "uc", &o->counts[KIND_UC] },	{ "ud", &o->counts[KIND_UD] },
			{ "xrc", &o->counts[KIND_XRC] } };
	const char *value = strchr(word, '=');
	size_t length = value != NULL ? (size_t)(value++ - word) : 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strlen(numbers[i].name) == length &&
		    strncmp(word, numbers[i].name, length) == 0) {
			*numbers[i].value = (uint32_t)strtoul(value, NULL, 0);
			return;
		}
	if (strncmp(word, "name=", 5) == 0)
		o->name = value;
	else if (strncmp(word, "seconds=", 8) == 0)
		o->seconds = strtod(value, NULL);
	else if (strncmp(word, "seed=", 5) == 0)
		o->seed = strtoull(value, NULL, 0);
	else if (strncmp(word, "orderly=", 8) == 0)
		o->orderly = *value == '1';
	else
		die("what is '%s'? See the head of tests/soak/load.c", word);
}

static struct options read_options(int argc, char **argv)
{
	struct options o = { .name = "soak",
			     .seconds = 10,
			     .rate = 10000,
			     .gid_index = 1,
			     .counts = { [KIND_RC] = 1 } };

	if (argc < 3 || (strcmp(argv[1], "server") != 0 && strcmp(argv[1], "client") != 0))
		die("usage: soak-load server|client SOCKET [option=value]...");
	o.server = strcmp(argv[1], "server") == 0;
	o.path = argv[2];
	for (int i = 3; i < argc; i++)
		read_option(&o, argv[i]);
	return o;
}

/* ---- the other side ---- */

/* The server sends first, so that the two do not both wait for room. */
static void exchange(struct soak *s)
{
	size_t length = s->lane_count * sizeof(struct far_end);
	struct far_end *mine = malloc(length), *far = malloc(length);

	if (mine == NULL || far == NULL)
		die("out of memory");
	for (uint32_t i = 0; i < s->lane_count; i++)
		mine[i] = s->lanes[i].far;
	if (s->o.server)
		mate_tell(s, mine, length);
	mate_hear(s, far, length);
	if (!s->o.server)
		mate_tell(s, mine, length);
	for (uint32_t i = 0; i < s->lane_count; i++)
		s->lanes[i].far = far[i];
	free(mine);
	free(far);
}

/* Neither sends before the other's queue pairs are ready. */
static void barrier(struct soak *s)
{
	char ready = 'R';

	mate_tell(s, &ready, 1);
	mate_hear(s, &ready, 1);
}

static void tell_counts(struct soak *s)
{
	struct counts *counts = calloc(s->lane_count, sizeof(*counts));

	if (counts == NULL)
		die("out of memory");
	for (uint32_t i = 0; i < s->lane_count; i++)
		counts[i] = (struct counts){ s->lanes[i].sent, s->lanes[i].counted };
	mate_tell(s, (char[]){ WORD_COUNTS }, 1);
	mate_tell(s, counts, s->lane_count * sizeof(*counts));
	free(counts);
}

static void hear_counts(struct soak *s)
{
	struct counts c;

	for (uint32_t i = 0; i < s->lane_count; i++) {
		mate_hear(s, &c, sizeof(c));
		s->lanes[i].far_sent = c.sent;
		s->lanes[i].far_counted = c.counted;
	}
	has_counts = !s->lost;
}

static void hear(struct soak *s)
{
	switch (mate_word(s)) {
	case WORD_STOP:
		has_stop = true;
		break;
	case WORD_COUNTS:
		hear_counts(s);
		break;
	case WORD_DONE:
		has_done = true;
		break;
	}
}

/* ---- the load ---- */

static bool take(struct soak *s)
{
	struct ibv_wc wc[BURST];
	int n, m;

	n = ibv_poll_cq(s->recv_cq, BURST, wc);
	for (int i = 0; i < n; i++)
		received(s, &wc[i]);
	m = ibv_poll_cq(s->send_cq, BURST, wc);
	for (int i = 0; i < m; i++)
		sent(s, &wc[i]);
	if ((n < 0 || m < 0) && !s->lost)
		mate_must_be_lost(s, NULL,
				  n == -EOVERFLOW || m == -EOVERFLOW
					  ? "ibv_poll_cq says that a CQ was full"
					  : "ibv_poll_cq failed");
	return n > 0 || m > 0;
}

/* Starts as many operations as the rate allows, in bursts, each on any lane that has room. */
static void begin_some(struct soak *s, double *allowed, double *since)
{
	double now = seconds_now(), most = BURST;

	*allowed += (now - *since) * s->o.rate;
	*since = now;
	if (*allowed < BURST_LEAST)
		return;
	if (*allowed > most)
		*allowed = most;
	for (; *allowed >= 1; *allowed -= 1) {
		struct lane *l = &s->lanes[random_below(s, s->lane_count)];

		if (lane_can_begin(l))
			lane_begin(s, l);
	}
}

/*
 * Sleeps until there is a completion, a word from the other program or an event, or until something
 * is due.
 */
static void sleep_a_little(struct soak *s, int ms)
{
	struct pollfd p[3] = { { .fd = s->channel->fd, .events = POLLIN },
			       { .fd = s->lost ? -1 : mate_socket(), .events = POLLIN },
			       { .fd = s->context->async_fd, .events = POLLIN } };
	struct ibv_cq *cq;
	void *context;

	if ((ibv_req_notify_cq(s->send_cq, 0) != 0 || ibv_req_notify_cq(s->recv_cq, 0) != 0) &&
	    !s->lost)
		mate_must_be_lost(s, NULL, "ibv_req_notify_cq failed");
	if (take(s))
		return;
	poll(p, 3, ms);
	while (ibv_get_cq_event(s->channel, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
}

static bool all_sent(const struct soak *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++)
		if (s->lanes[i].done < s->lanes[i].begun)
			return false;
	return true;
}

static bool all_received(const struct soak *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++) {
		const struct lane *l = &s->lanes[i];

		if (l->expected > l->far_sent)
			lane_die(s, l, "%llu messages came of %llu",
				 (unsigned long long)l->expected, (unsigned long long)l->far_sent);
		if (l->kind != KIND_UC && l->kind != KIND_UD && l->expected < l->far_sent)
			return false;
	}
	return true;
}

static void check_counters(const struct soak *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++) {
		const struct lane *l = &s->lanes[i];
		uint64_t is;

		memcpy(&is, l->memory + AT_COUNTER, sizeof(is));
		if (is != l->far_counted)
			lane_die(s, l, "the counter is %llu after %llu atomics",
				 (unsigned long long)is, (unsigned long long)l->far_counted);
	}
}

static void check_stalls(const struct soak *s, double limit)
{
	double now = seconds_now();

	for (uint32_t i = 0; i < s->lane_count; i++) {
		const struct lane *l = &s->lanes[i];

		if (l->done < l->begun && now - l->since > limit)
			lane_die(s, l, "operation %llu is not done after %.0f s%s",
				 (unsigned long long)l->done, now - l->since,
				 s->lost ? ", and the other side is gone" : "");
	}
}

static enum phase next_phase(struct soak *s, enum phase phase, double end)
{
	switch (phase) {
	case PHASE_LOAD:
		if (!s->o.server && seconds_now() > end)
			mate_tell(s, (char[]){ WORD_STOP }, 1);
		else if (!has_stop)
			return phase;
		return PHASE_DRAIN;
	case PHASE_DRAIN:
		if (!all_sent(s))
			return phase;
		tell_counts(s);
		return PHASE_COUNTS;
	case PHASE_COUNTS:
		if (!has_counts || !all_received(s))
			return phase;
		check_counters(s);
		mate_tell(s, (char[]){ WORD_DONE }, 1);
		return PHASE_DONE;
	default:
		return phase;
	}
}

/* Until both sides have everything, or one of them is gone and all that was posted has ended. */
static void load(struct soak *s)
{
	double start = seconds_now(), since = start, looked = start, drained = start, allowed = 0;
	enum phase phase = PHASE_LOAD;

	while (s->lost ? !all_sent(s) : phase != PHASE_DONE || !has_done) {
		bool busy = take(s);

		if (phase == PHASE_LOAD && !s->lost)
			begin_some(s, &allowed, &since);
		hear(s);
		if (!busy)
			sleep_a_little(s, phase == PHASE_LOAD && s->o.rate > 1000 ? 1 : WAIT_MS);
		if (!s->lost)
			phase = next_phase(s, phase, start + s->o.seconds);
		if (seconds_now() < looked + 1)
			continue;
		looked = seconds_now();
		check_stalls(s, s->lost ? LOST_S : STALL_S);
		drained = phase == PHASE_LOAD ? looked : drained;
		if (!s->lost && looked > drained + 2 * STALL_S)
			die("%s: the end did not come in %d s (phase %d)", s->o.name, 2 * STALL_S,
			    (int)phase);
	}
}

int main(int argc, char **argv)
{
	static struct soak s;

	setvbuf(stdout, NULL, _IOLBF, 0);
	s.o = read_options(argc, argv);
	objects_make(&s);
	mate_meet(&s);
	exchange(&s);
	if (!s.lost) {
		objects_connect(&s);
		receives_post(&s);
		barrier(&s);
		beside_begin(&s);
		printf("running\n");
		load(&s);
		beside_end(&s);
	}
	objects_destroy(&s);
	printf("%s: operations=%llu messages=%llu octets=%llu missing=%llu overtaken=%llu "
	       "registrations=%llu forks=%llu\n",
	       s.lost ? "lost" : "all", (unsigned long long)s.operations,
	       (unsigned long long)s.messages, (unsigned long long)s.octets,
	       (unsigned long long)s.missing, (unsigned long long)s.overtaken,
	       (unsigned long long)s.registrations, (unsigned long long)s.forks);
	return s.lost ? STATUS_LOST : 0;
}
