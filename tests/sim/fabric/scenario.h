/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scenarios: several hosts and switches, a load that meets in one place, and what became of it.
 *
 *	incast		many hosts send to one, through one switch
 *	bottleneck	pairs of hosts share one slower cable between two switches
 *	reorder		one pair; frames overtake each other
 *	many		one pair with very many queue pairs, ports that refuse, short receive rings
 *
 * The checks of transfer.h hold in all of them. Everything follows from the seed.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum scenario {
	SCENARIO_INCAST,
	SCENARIO_BOTTLENECK,
	SCENARIO_REORDER,
	SCENARIO_MANY,
	SCENARIOS,
};

/* The hosts. */
enum peers {
	PEERS_UROCE,
	PEERS_LINUX, /* go-back-N without congestion control */
	PEERS_DCQCN, /* go-back-N with DCQCN */
	PEERS_MIXED, /* every second sender is like Linux, all others are uroce */
	PEERS,
};

/* Additional traffic; UC and UD send messages at a tenth of the rate. */
enum beside_kind {
	BESIDE_NONE,
	BESIDE_UC,
	BESIDE_UD,
	BESIDE_CM, /* connections that begin and end, at a rate of their own */
	BESIDES,
};

struct scenario_config {
	enum scenario scenario;
	enum peers peers;
	enum beside_kind beside;
	uint64_t seed;
	uint32_t senders; /* hosts */
	uint32_t qps; /* of each sender */
	uint32_t size, depth; /* octets of a message, messages under way of a queue pair */
	uint32_t mtu; /* octets of a packet's payload */
	uint8_t opcode; /* enum work_opcode */
	uint8_t timeout; /* of acknowledgements: 4.096 us * 2^timeout */
	double rate; /* bits a second of the shared cable; 0: the scenario does not exist */
	double delay; /* ns of each cable */
	double trunk_delay; /* ns of the cable between the switches (bottleneck) */
	double buffer, ecn; /* octets of a switch port's buffer; ecn 0: no frame is marked */
	double shared; /* octets that all ports of a switch share; 0: no bound */
	double loss, reorder; /* probabilities, each way */
	uint32_t places; /* places by which a frame may be late */
	uint32_t ring; /* frames of a receive ring */
	double packet_time; /* ns of a host's processor for a packet */
	double receiver_time; /* the same for hosts that only receive; 0: like the others */
	double refuses; /* probability that a port refuses, */
	double refuses_for; /* ns */
	uint32_t gone; /* queue pairs whose peer is killed when the measured time begins, */
	bool late; /* ... and the others start then */
	bool forgetful; /* receivers have no room for packets that arrive early */
	double time; /* ns; the first tenth is not measured */
	const char *svg; /* NULL: no plot */
};

struct scenario_result {
	bool ok;
	char why[512];
	double use; /* octets of messages through the bottleneck, as a share of its rate */
	double left; /* the same of those whose peer is not killed */
	double dropped; /* share of the frames that reached the bottleneck */
	double fairness; /* Jain's, of the queue pairs' octets */
	double median, slow,
		slowest; /* ns: completion times of 50, 99 and 99.9 % of the messages */
	double ideal; /* ns: if all share the rate equally */
	double again; /* share of packets sent again */
	double rate; /* messages a second */
	uint64_t messages, packets, marked, cnps;
	uint64_t overflowed; /* frames that found a receive ring full */
	uint64_t refused; /* how often ports refused */
	uint64_t timeouts;
	uint64_t longest; /* octets that waited at the bottleneck, at most */
	uint64_t beside_sent, beside_arrived; /* messages; BESIDE_CM: connections begun, made */
	uint32_t failed; /* queue pairs that gave up; one of uroce: the run is not ok */
	nanotime last_failure; /* ... the last of them at that time */
};

const char *scenario_name(enum scenario s);
const char *scenario_peers_name(enum peers p);
/* The defaults. */
struct scenario_config scenario_defaults(enum scenario s);
/* NULL, or what is wrong: "must be ..." */
const char *scenario_refuses(const struct scenario_config *c);
void scenario_run(const struct scenario_config *c, struct scenario_result *r);

#endif
