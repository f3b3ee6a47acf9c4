/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "engine/uroce.h"
#include "page.h"
#include "progress.h"
#include "stages.h"
#include "tcp.h"
#include "ucx.h"

#define PATH_OCTETS 1024
#define LARGE	    65536u /* octets of a message under loss */
#define SMALL	    8u

/* Where to measure: lists that end with 0 or, of losses, with a negative number. */
struct plan {
	uint32_t size[PERF_SIZES], qps[PERF_SIZES];
	double loss[PERF_SIZES]; /* percent, in each direction */
};

static const struct plan plans[2] = {
	{ .size = { 8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576 },
	  .qps = { 1, 2, 4, 16, 64, 256, 1024 },
	  .loss = { 0, 0.1, 1, 5, 10, -1 } },
	{ .size = { 8, 4096, 65536 }, .qps = { 1, 16 }, .loss = { 0, 1, -1 } },
};

/* Percentiles of the distribution, as far as there are round trips enough. */
static const double percents[] = { 0,  10,   25,   50,	 75,	90,    95,    98,
				   99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 99.999 };

/* Those of UCX, whose program keeps the last 2048 times; each is a run of its own. */
static const double ucx_percents[] = { 50, 90, 99 };

struct measure {
	struct perf_options *options;
	const struct plan *plan;
	struct limit_result limits;
	struct page page;
	struct tcp_pair tcp;
	bool has_tcp;
	/* of TCP, measured before EAL chooses this thread's core */
	double tcp_rate[PERF_SIZES];
	struct histogram tcp_trips, trips;
	bool has_ucx;
	double ucx_rate[PERF_SIZES];
	double ucx_trip[ARRAY_SIZE(ucx_percents)]; /* us */
};

static uint32_t count(const uint32_t *list)
{
	uint32_t n = 0;

	while (list[n] != 0)
		n++;
	return n;
}

static uint32_t losses(const struct plan *p)
{
	uint32_t n = 0;

	while (p->loss[n] >= 0)
		n++;
	return n;
}

static void sizes_of_plan(const struct plan *p, struct perf_options *o)
{
	o->sizes = count(p->size);
	memcpy(o->size, p->size, sizeof(o->size));
}

/* As many as progress_step() is called. */
static uint32_t steps(const struct plan *p)
{
	return 1 + 3 * count(p->size) + 2 * (count(p->size) + 1) + count(p->qps) + BARS_LOADS + 2 +
	       3 * losses(p);
}

/* ---- the kernel's TCP ---- */

static void measure_tcp(struct measure *m)
{
	const struct perf_options *o = m->options;

	m->has_tcp = tcp_open(&m->tcp, o->placement != PLACE_ONE, m->page.missing,
			      sizeof(m->page.missing)) == 0;
	for (uint32_t i = 0; i < count(m->plan->size); i++) {
		progress_step("the kernel's TCP, writes of %u octets", m->plan->size[i]);
		if (m->has_tcp)
			m->tcp_rate[i] = tcp_rate(&m->tcp, m->plan->size[i], o->seconds);
	}
	progress_step("the kernel's TCP, round trips");
	if (m->has_tcp && tcp_latency(&m->tcp, SMALL, o->seconds, &m->tcp_trips) != 0)
		m->tcp_trips.count = 0;
	tcp_close(&m->tcp);
}

/* ---- UCX over TCP ---- */

/* Behind what is missing already. */
static void ucx_is_missing(struct measure *m, const char *why)
{
	size_t said = strlen(m->page.missing);

	snprintf(m->page.missing + said, sizeof(m->page.missing) - said,
		 "%sUCX over TCP was not measured: ucx_perftest (package ucx-utils) %s.",
		 said > 0 ? " " : "", why);
	m->has_ucx = false;
}

static void measure_ucx(struct measure *m)
{
	const struct perf_options *o = m->options;

	m->has_ucx = true;
	if (!ucx_answers())
		ucx_is_missing(m, "is not installed, or does not run");
	for (uint32_t i = 0; i < count(m->plan->size); i++) {
		progress_step("UCX over TCP, messages of %u octets", m->plan->size[i]);
		if (m->has_ucx && !ucx_rate(m->plan->size[i], o->seconds, &m->ucx_rate[i]))
			ucx_is_missing(m, "fails");
	}
	progress_step("UCX over TCP, latency");
	for (uint32_t i = 0; m->has_ucx && i < ARRAY_SIZE(ucx_percents); i++)
		if (!ucx_latency(SMALL, ucx_percents[i], o->seconds, &m->ucx_trip[i]))
			ucx_is_missing(m, "fails");
}

static void distribution(struct figure *f, const char *name, enum series_look look,
			 const struct histogram *h)
{
	struct series *s = figure_series(f, name, look);

	for (uint32_t i = 0; i < ARRAY_SIZE(percents); i++)
		if ((double)h->count * (100 - percents[i]) / 100 >= 1)
			series_point(s, percents[i],
				     (double)(percents[i] > 0 ? histogram_percentile(h, percents[i])
							      : h->min) /
					     1e3);
}

/* ---- rates ---- */

/* The limit of rates; that of latency is always of one core. */
static struct series *limit_of_rates(const struct measure *m, struct figure *f)
{
	bool two = m->options->placement == PLACE_TWO;

	return figure_series(f, two ? "limit of two cores" : "limit of a core", LOOK_LIMIT);
}

static void limits_by_size(const struct measure *m, struct series *s)
{
	for (uint32_t i = 0; i < count(m->plan->size); i++) {
		uint32_t size = m->plan->size[i];

		series_point(s, size, limits_messages(&m->limits, size) * size * 8 / 1e9);
	}
}

static int rate_by_size(struct measure *m, struct perf_pair *p, struct figure *f,
			enum perf_operation op, const char *name)
{
	struct series *s = figure_series(f, name, LOOK_OWN);
	struct load_result r;

	for (uint32_t i = 0; i < count(m->plan->size); i++) {
		progress_step("%s of %u octets", name, m->plan->size[i]);
		if (load_run(p, op, m->plan->size[i], 1, &r) != 0)
			return 1;
		series_point(s, r.size, (double)r.octets * 8 / r.seconds / 1e9);
	}
	return 0;
}

/* The measurements of another one; nothing if that failed. */
static void beside_by_size(struct measure *m, struct figure *f, const char *name,
			   const double *rate)
{
	struct series *s = figure_series(f, name, LOOK_BESIDE);

	for (uint32_t i = 0; i < count(m->plan->size); i++)
		if (rate[i] > 0)
			series_point(s, m->plan->size[i], rate[i] / 1e9);
}

static int figure_sizes(struct measure *m, struct perf_pair *p)
{
	struct figure *f = page_figure(&m->page);

	*f = (struct figure){
		.id = "throughput",
		.title = "Throughput by size",
		.note = "Payload on one queue pair. Limit: frames of that size are made, their payload is "
			"copied and summed at both ends, and they pass through the same ports, on the "
			"cores that the engines have, without an engine. TCP: one connection over the loopback interface, which "
			"makes no sums and whose frames have 64 KiB; small writes share a frame. UCX: "
			"tagged messages over such a connection, both ends in one thread.",
		.x = { AXIS_BINARY, "octets of a message", "B" },
		.y = { AXIS_DECIMAL, "payload", "Gbit/s" },
	};
	if (rate_by_size(m, p, f, PERF_WRITE, "RDMA WRITE") != 0 ||
	    rate_by_size(m, p, f, PERF_READ, "RDMA READ") != 0 ||
	    rate_by_size(m, p, f, PERF_SEND, "SEND") != 0)
		return 1;
	limits_by_size(m, limit_of_rates(m, f));
	if (m->has_tcp)
		beside_by_size(m, f, "kernel TCP", m->tcp_rate);
	if (m->has_ucx)
		beside_by_size(m, f, "UCX over TCP", m->ucx_rate);
	return 0;
}

static int figure_qps(struct measure *m, struct perf_pair *p)
{
	struct figure *f = page_figure(&m->page);
	struct series *s, *limit;
	struct load_result r;

	*f = (struct figure){
		.id = "rate",
		.title = "Message rate by number of queue pairs",
		.note = "RDMA WRITE of 8 octets on this number of queue pairs at once. Limit: as above, with "
			"8 octets.",
		.x = { AXIS_BINARY, "queue pairs", "" },
		.y = { AXIS_FROM_ZERO, "messages", "M/s" },
	};
	s = figure_series(f, "RDMA WRITE", LOOK_OWN);
	limit = limit_of_rates(m, f);
	for (uint32_t i = 0; i < count(m->plan->qps); i++) {
		progress_step("messages on %u queue pairs", m->plan->qps[i]);
		if (load_run(p, PERF_WRITE, SMALL, m->plan->qps[i], &r) != 0)
			return 1;
		series_point(s, r.qps, (double)r.messages / r.seconds / 1e6);
		series_point(limit, r.qps, limits_messages(&m->limits, SMALL) / 1e6);
	}
	return 0;
}

static int measure_rates(struct measure *m)
{
	struct perf_options o = *m->options;
	struct perf_pair p;
	int failed;

	sizes_of_plan(m->plan, &o);
	o.qps = m->plan->qps[count(m->plan->qps) - 1];
	failed = pair_open(&p, "perf", false, &o) != 0 || figure_sizes(m, &p) != 0 ||
		 figure_qps(m, &p) != 0 || stages_bars(&p, &m->limits, &m->page.cycles) != 0;
	pair_close(&p);
	return failed;
}

/* ---- latency ---- */

static void ucx_distribution(struct measure *m, struct figure *f)
{
	struct series *s = figure_series(f, "UCX over TCP, 8 octets", LOOK_BESIDE);

	for (uint32_t i = 0; i < ARRAY_SIZE(ucx_percents); i++)
		series_point(s, ucx_percents[i], m->ucx_trip[i]);
}

static int figure_latency(struct measure *m, struct perf_pair *p)
{
	static const uint32_t sizes[] = { SMALL, 4096 };
	static const char *const names[] = { "WRITE of 8 octets", "WRITE of 4 KiB" };
	struct figure *f = page_figure(&m->page);
	struct series *limit;

	*f = (struct figure){
		.id = "latency",
		.title = "Distribution of latency",
		.note = "Half of a round trip of RDMA WRITE; at 99 % only one in a hundred took longer. "
			"Limit: a frame of 8 octets is made, summed and copied, on one core. TCP: 8 "
			"octets over the loopback interface, between threads that sleep until data "
			"comes. UCX: 8 octets one way, over TCP to the same thread.",
		.x = { AXIS_NINES, "percentile", "%" },
		.y = { AXIS_DECIMAL, "half round trip", "us" },
	};
	for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		progress_step("%s, there and back", names[i]);
		if (latency_run(p, sizes[i], &m->trips) != 0)
			return 1;
		distribution(f, names[i], LOOK_OWN, &m->trips);
	}
	limit = figure_series(f, "limit of a core", LOOK_LIMIT);
	for (uint32_t i = 0; i < f->series[0].points; i++)
		series_point(limit, f->series[0].x[i], 1e6 / m->limits.raw_small_full_pps);
	if (m->tcp_trips.count > 0)
		distribution(f, "kernel TCP, 8 octets", LOOK_BESIDE, &m->tcp_trips);
	if (m->has_ucx)
		ucx_distribution(m, f);
	return 0;
}

/* ---- loss ---- */

static int rate_under_loss(struct measure *m, struct perf_pair *p)
{
	struct figure *f = page_figure(&m->page);
	struct series *s[2], *limit;
	const char *const names[] = { "RDMA WRITE", "RDMA READ" };
	struct load_result r;

	*f = (struct figure){
		.id = "loss",
		.title = "Throughput under loss",
		.note = "Messages of 64 KiB on one queue pair while this share of the frames is lost in "
			"each direction. Limit: as above, less what is lost.",
		.x = { AXIS_LIST, "frames lost", "%" },
		.y = { AXIS_FROM_ZERO, "payload", "Gbit/s" },
	};
	s[PERF_WRITE] = figure_series(f, names[PERF_WRITE], LOOK_OWN);
	s[PERF_READ] = figure_series(f, names[PERF_READ], LOOK_OWN);
	limit = limit_of_rates(m, f);
	for (uint32_t i = 0; i < losses(m->plan); i++) {
		double loss = m->plan->loss[i];

		if (pair_impair(p, loss / 100, 0) != 0)
			return 1;
		for (enum perf_operation op = PERF_WRITE; op <= PERF_READ; op++) {
			progress_step("%s, %g %% of the frames lost", names[op], loss);
			if (load_run(p, op, LARGE, 1, &r) != 0)
				return 1;
			series_point(s[op], loss, (double)r.octets * 8 / r.seconds / 1e9);
		}
		series_point(limit, loss,
			     limits_messages(&m->limits, LARGE) * LARGE * 8 * (1 - loss / 100) /
				     1e9);
	}
	return 0;
}

static int latency_under_loss(struct measure *m, struct perf_pair *p)
{
	static const double shown[] = { 50, 99, 99.9 };
	static const char *const names[] = { "half of all", "99 %", "99.9 %" };
	struct figure *f = page_figure(&m->page);
	struct series *s[ARRAY_SIZE(shown)], *limit;

	*f = (struct figure){
		.id = "loss-latency",
		.title = "Latency under loss",
		.note = "Half of a round trip of RDMA WRITE of 8 octets that this share of all messages "
			"did not exceed. Nothing behind a lost message shows the gap, so a probe "
			"of the sender has to find it. Limit: the same as without loss.",
		.x = { AXIS_LIST, "frames lost", "%" },
		.y = { AXIS_DECIMAL, "half round trip", "us" },
	};
	for (uint32_t k = 0; k < ARRAY_SIZE(shown); k++)
		s[k] = figure_series(f, names[k], LOOK_OWN);
	limit = figure_series(f, "limit of a core", LOOK_LIMIT);
	for (uint32_t i = 0; i < losses(m->plan); i++) {
		double loss = m->plan->loss[i];

		progress_step("round trips, %g %% of the frames lost", loss);
		if (pair_impair(p, loss / 100, 0) != 0 || latency_run(p, SMALL, &m->trips) != 0)
			return 1;
		for (uint32_t k = 0; k < ARRAY_SIZE(shown); k++)
			series_point(s[k], loss,
				     (double)histogram_percentile(&m->trips, shown[k]) / 1e3);
		series_point(limit, loss, 1e6 / m->limits.raw_small_full_pps);
	}
	return 0;
}

/* A pair for round trips, without and then with net_impair before its ports. */
static int measure_trips(struct measure *m)
{
	struct perf_options o = *m->options;
	struct perf_pair p;
	int failed;

	o.latency = true;
	o.sizes = 2;
	o.size[0] = SMALL;
	o.size[1] = LARGE;
	failed = pair_open(&p, "trip", false, &o) != 0 || figure_latency(m, &p) != 0;
	pair_close(&p);
	if (failed)
		return 1;
	failed = pair_open(&p, "loss", true, &o) != 0 || rate_under_loss(m, &p) != 0 ||
		 latency_under_loss(m, &p) != 0;
	pair_close(&p);
	return failed;
}

/* ---- what stands above the figures ---- */

static void processor_name(char *name, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(name, size, "unknown processor");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(name, size, "%s", strchr(line, ':') + 2);
			break;
		}
	if (f != NULL)
		fclose(f);
}

static void describe(struct measure *m)
{
	static const char *const placed[] = {
		[PLACE_ONE] = "both engines and the program on one core",
		[PLACE_TWO] = "an engine on each of two cores",
		[PLACE_APART] = "both engines on one core, the program on another",
	};
	const struct perf_options *o = m->options;
	struct page *p = &m->page;
	struct utsname kernel;
	time_t now = time(NULL);
	struct tm utc;
	char cpu[128];

	uname(&kernel);
	processor_name(cpu, sizeof(cpu));
	snprintf(p->machine, sizeof(p->machine), "%s, %ld CPUs, %s %s", cpu,
		 sysconf(_SC_NPROCESSORS_ONLN), kernel.sysname, kernel.release);
	snprintf(p->settings, sizeof(p->settings),
		 "uroce %s: two engines joined by net_ring, %s; path MTU %u, %u requests under way "
		 "on a queue pair, %u posted at once, %g s for each point",
		 uroce_version(), placed[o->placement], o->mtu, o->depth, o->post, o->seconds);
	strftime(p->date, sizeof(p->date), "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
}

/* ---- files ---- */

/* A file of the folder, under another name until it is whole. NULL after a line on stderr. */
static FILE *file_begin(const char *folder, const char *name, char path[PATH_OCTETS])
{
	FILE *f;

	if (snprintf(path, PATH_OCTETS, "%s/.%s.new", folder, name) >= PATH_OCTETS) {
		fprintf(stderr, "uroce perf: --report %s: the path is too long\n", folder);
		return NULL;
	}
	f = fopen(path, "we");
	if (f == NULL)
		fprintf(stderr, "uroce perf: --report %s: %s\n", folder, strerror(errno));
	return f;
}

static int file_end(FILE *f, const char *folder, const char *name, const char *path)
{
	char whole[PATH_OCTETS];
	bool bad = ferror(f) != 0;

	snprintf(whole, sizeof(whole), "%s/%s", folder, name);
	if (fclose(f) == 0 && !bad && rename(path, whole) == 0)
		return 0;
	fprintf(stderr, "uroce perf: --report %s: %s: %s\n", folder, name, strerror(errno));
	unlink(path);
	return 1;
}

static int measure_all(struct measure *m)
{
	struct perf_options o = *m->options;

	describe(m);
	progress_begin(steps(m->plan));
	measure_tcp(m);
	measure_ucx(m);
	progress_step("this machine without an engine");
	sizes_of_plan(m->plan, &o);
	return pair_eal(m->options) != 0 || limits_run(&o, &m->limits) != 0 ||
	       measure_rates(m) != 0 || measure_trips(m) != 0;
}

int measure_report(struct perf_options *o)
{
	static const char *const names[] = { "index.html", "figures.json" };
	static struct measure m;
	char path[ARRAY_SIZE(names)][PATH_OCTETS];
	FILE *file[ARRAY_SIZE(names)];
	int failed;

	m = (struct measure){ .options = o, .plan = &plans[o->quick] };
	if (mkdir(o->report, 0777) != 0 && errno != EEXIST) {
		fprintf(stderr, "uroce perf: --report %s: %s\n", o->report, strerror(errno));
		return 1;
	}
	/* before minutes of measuring */
	file[0] = file_begin(o->report, names[0], path[0]);
	file[1] = file[0] == NULL ? NULL : file_begin(o->report, names[1], path[1]);
	if (file[1] == NULL)
		return 1;
	failed = measure_all(&m);
	progress_end();
	if (failed) {
		unlink(path[0]);
		unlink(path[1]);
		return 1;
	}
	page_write(file[0], &m.page);
	page_json(file[1], &m.page);
	if (file_end(file[0], o->report, names[0], path[0]) != 0 ||
	    file_end(file[1], o->report, names[1], path[1]) != 0)
		return 1;
	printf("%s/%s\n", o->report, names[0]);
	return 0;
}
