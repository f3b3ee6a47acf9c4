/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that rdma_cm makes and ends beside the transfers of a scenario, one after the other, many at
 * a time. Their messages are the MADs of lib/cm, in datagrams that switches may drop and cables may lose:
 *
 *	asker     REQ ->          RTU ->    (stays for a while)  DREQ ->
 *	listener          <- REP                                         <- DREP
 *
 * Checked:
 *
 *	a request reaches the listener's program once, with its octets, and so does the reply
 *	both ends agree on queue pair numbers
 *	no connection fails, and in the end all are over at both ends
 */
#ifndef SIM_CONNECTS_H
#define SIM_CONNECTS_H

#include "cm/cm.h"
#include "endpoint.h"
#include "fabric.h"

#define CONNECTS_TABLE 64u /* connections of one end, those in TIMEWAIT included */
#define CONNECTS_DEPTH 64u /* datagrams under way, and receive requests */

/* One end of a connection. */
struct connect {
	struct cm_connection c;
	uint32_t number; /* of the asker, from 1: the same at both ends */
	nanotime leave_at; /* the asker: then it disconnects; 0: not yet connected */
	bool connected;
};

/* All connections of one host. */
struct connects_side {
	struct host *host;
	struct endpoint *e;
	uint32_t source_at, sink_at, key;
	uint32_t posted, completed, receives;
	uint32_t established;
	struct connect entry[CONNECTS_TABLE];
};

struct connects {
	struct connects_side asker, listener;
	struct event tick;
	nanotime next; /* when a connection begins */
	uint32_t begun, requested;
	uint8_t *seen; /* a bit for each number that was requested */
	bool stopped; /* no further connection begins */
};

/* Octets of memory that a host needs for it. */
size_t connects_memory(void);
void connects_start(struct connects *s, struct fabric *f);
void connects_settle(struct connects *s, struct fabric *f, struct endpoint *e);
/* No connection is under way. */
bool connects_done(const struct connects *s);
void connects_end(struct connects *s, struct fabric *f);

#endif
