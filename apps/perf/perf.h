/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `uroce perf`: two engines in one process whose ports are joined by net_ring, used through the
 * public verbs API. The same run measures the machine's limits without an engine.
 */
#ifndef APPS_PERF_PERF_H
#define APPS_PERF_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "histogram.h"

#define PERF_SIZES	  16u
#define PERF_QPS	  16384u
#define PERF_DEPTH	  4096u
/* Round trips that a distribution has at least, however busy the machine is. */
#define PERF_TRIPS	  10u
#define PERF_OCTETS	  (64u << 20) /* of a message */
/* Of a port: frames on the way to the other end, and buffers. */
#define PERF_PORT_SLOTS	  1024u
#define PERF_PORT_BUFFERS 8191u

enum perf_operation {
	PERF_WRITE,
	PERF_READ,
	PERF_SEND,
	PERF_ATOMIC,
	PERF_OPERATIONS,
};

/* Which threads poll the two engines. */
enum perf_placement {
	PLACE_ONE, /* the program's thread polls both, on one lcore */
	PLACE_TWO, /* the program's thread polls one, a second lcore the other */
	PLACE_APART, /* a second lcore polls both; the program has its own */
};

struct perf_options {
	bool operation[PERF_OPERATIONS];
	uint32_t sizes;
	uint32_t size[PERF_SIZES]; /* octets */
	uint32_t qps_count; /* numbers of queue pairs that work at once, one after another */
	uint32_t qps_of[PERF_SIZES];
	uint32_t qps; /* the largest of them */
	uint32_t depth; /* outstanding requests on each queue pair */
	uint32_t post; /* requests posted by one call, the last one signalled */
	uint32_t mtu; /* IB path MTU, octets */
	double seconds; /* of each measurement, at least */
	enum perf_placement placement;
	bool latency;
	bool limits;
	bool json;
	bool cycles; /* by stage */
	uint32_t losses; /* 0: net_impair is not there */
	double loss[PERF_SIZES]; /* per cent of the frames, in each direction */
	uint32_t reorders; /* as losses */
	double reorder[PERF_SIZES]; /* per cent of the frames that others overtake, at each loss */
	uint32_t memory; /* MB for EAL if there are no hugepages */

	const char *report; /* the folder of a page; NULL: none */
	bool quick; /* few points, short measurements */

	/* between two machines */
	bool server;
	bool once; /* the server ends after the first client */
	const char *peer; /* of the client; NULL: both ends are here */
	const char *socket; /* of the engine; NULL: the usual ones */
	uint16_t tcp_port;
	double link; /* Gbit/s; 0: as the port says */
};

/* One end: a device and its objects. */
struct perf_side {
	struct uroce_engine *engine;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_mr *mr;
	uint8_t *buffer;
	struct ibv_qp **qp;
	uint8_t outstanding; /* READs and atomics of a queue pair, in each direction */
	union ibv_gid gid;
	/* the other end: its address, its buffer */
	union ibv_gid far_gid;
	uint64_t far_address;
	uint32_t far_key;
};

struct perf_pair {
	const struct perf_options *options;
	const char *name; /* of the pair: its devices are NAME0 and NAME1 */
	bool impaired; /* net_impair stands before each port */
	struct perf_side a; /* posts requests */
	struct perf_side b; /* answers */
	bool far; /* one of both is another program's, and engines poll by themselves */
	unsigned int other_lcore;
	uint32_t stop; /* ends the second lcore. Atomic: that lcore reads it meanwhile */
};

/* False: exit with *status. */
bool perf_options_parse(struct perf_options *o, int argc, char **argv, int *status);

/* Opens a device and makes the objects of one end. 0, or 1 after a line on stderr; then close it, too. */
int side_open(struct perf_side *s, const char *device, const struct perf_options *o);
void side_close(struct perf_side *s, uint32_t qps);
/* Connects queue pair number i to number i of the other end. 0, or 1 after a line on stderr. */
int qp_connect(struct perf_side *from, uint32_t i, uint32_t to, uint32_t mtu);

int pair_eal(const struct perf_options *o);
/* `name` is new in this process, and not "uroce": an engine of this host may have it. 0, or 1 after a line on stderr. */
int pair_open(struct perf_pair *p, const char *name, bool impaired, const struct perf_options *o);
/*
 * From now on these parts of the frames of each direction are lost, and overtaken by up to 32 others. Only of
 * an impaired pair.
 */
int pair_impair(struct perf_pair *p, double lost, double overtaken);
void pair_close(struct perf_pair *p);
/* Polls the engines that the program's thread has to poll, once. */
void pair_poll(struct perf_pair *p);

/* What net_impair does to frames, in per cent of them; negative: it does nothing of that kind. */
struct perf_flaws {
	double loss, reordered;
};

struct load_result {
	enum perf_operation operation;
	uint32_t size;
	uint32_t qps;
	double seconds;
	struct perf_flaws flaws;
	double again; /* packets of both engines that were sent again, a part of those sent */
	uint64_t messages;
	uint64_t octets;
};

/*
 * Rate and bandwidth of one operation and size on `qps` queue pairs, over whole rounds (rounds.h). 0, or 1 after a
 * line on stderr.
 */
int load_run(struct perf_pair *p, enum perf_operation operation, uint32_t size, uint32_t qps,
	     struct load_result *r);
/* Packets that both engines have sent so far, and sent again. */
void pair_count(const struct perf_pair *p, uint64_t *sent, uint64_t *again);
/* Half of the round trip of a WRITE ping-pong, in ns. */
int latency_run(struct perf_pair *p, uint32_t size, struct histogram *h);

struct limit_result {
	double copy_ns; /* memcpy of 4 KiB */
	double icrc_ns; /* the ICRC of 4 KiB */
	double copy_and_sum_ns; /* icrc_copy of 4 KiB */
	/* 64 octets through an rte_ring to another thread; 0: there is one core */
	double handoff_ns;
	/* 64-octet frames through the joined ports; only the header is written */
	double raw_small_pps;
	/* with 4 KiB of payload: header, copy in, sum, port, sum, copy out; an engine's limit */
	double raw_full_pps;
	double raw_full_bits; /* ... in payload bits per second */
	double raw_small_full_pps; /* the same with 8 octets of payload */
	/*
	 * Messages of each size of the options a second, cut at the path MTU. Their octets come from and go to memory
	 * of the message's size, as a program's do, and not to one page that stays in the nearest cache.
	 */
	uint32_t sizes;
	struct {
		uint32_t size;
		double of_one; /* sent and received by one core */
		double of_two; /* sent by one core and received by another; 0: the placement is not "two" */
	} message[PERF_SIZES];
	double small_of_two; /* frames of 8 octets, as of_two */
};

/* 0, or 1 after a line on stderr. */
int limits_run(const struct perf_options *o, struct limit_result *r);
/* Messages of this size a second, on as many cores as the placement gives to the engines; 0: not measured. */
double limits_messages(const struct limit_result *l, uint32_t size);
/* ... on one core, whatever the placement. */
double limits_of_one(const struct limit_result *l, uint32_t size);

extern const char *const operation_name[PERF_OPERATIONS];
extern const char *const placement_name[];

#endif
