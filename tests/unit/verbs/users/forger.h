/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile H-54: a process of another user. It connects a queue pair of its own to any number that it is
 * given, and has the right PSN and key.
 */
#ifndef TESTS_VERBS_FORGER_H
#define TESTS_VERBS_FORGER_H

#include <stdbool.h>

#include "rig/endpoint.h"

#define GUESSES	   150u /* of PSNs */
#define DO_NOT_AIM UINT32_MAX

/* Orders to the attacker, and its answers. */
struct order {
	uint32_t qpn;
	uint32_t psn; /* of its first packet; DO_NOT_AIM: it guesses */
	uint32_t type; /* enum ibv_qp_type */
	uint32_t opcode; /* enum ibv_wr_opcode */
	uint64_t address;
	uint32_t rkey;
	uint32_t srqn; /* of an XRC target */
	union ibv_gid gid; /* all zero: the engine's own */
	uint8_t sgid_index; /* 0: GID_INDEX */
};

struct report {
	uint32_t status; /* enum ibv_wc_status of the last request */
	uint32_t sent;
	int refused; /* errno of ibv_modify_qp */
};

/* Forks it; skips the test where we are not root. */
void forger_begin(void);
void forger_end(void);
struct report forger_obeys(const struct order *o);
/* The same in two steps. */
void forger_begins_to(const struct order *o);
struct report forger_reports(void);
/* ... for which the peer would no longer wait. */
bool forger_has_reported(void);

/* A queue pair of that type, and its way to RTS towards that number: 0, or r->refused says why not. */
struct ibv_qp *forger_qp(struct endpoint *e, const struct order *o);
int forger_aim(struct endpoint *e, struct ibv_qp *qp, const struct order *o, uint32_t psn,
	       struct report *r);
/* Packets that the engine has dropped because they did not come from the peer. */
uint64_t forger_counted(void);
/*
 * ... and more than so many: an unreliable packet counts as sent when it has left, which another lcore may see later.
 * False: they did not become more.
 */
bool forger_counts(uint64_t before);
/* Connections that it has refused because they are another user's. */
uint64_t forger_refused(void);

/* ---- the attacker and a victim on the same engine ---- */

/* forger_begin, then the victim's endpoint, whose buffer no peer may touch. */
void victim_begin(struct endpoint *victim);
void victim_end(struct endpoint *victim);
/* It has completed nothing, and its buffer is as it was. */
void victim_untouched(struct endpoint *victim, const char *what);

#endif
