/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control path: everything slow. One engine thread serves the socket, notices deaths of
 * clients, updates the heartbeat in every client page, answers neighbours and follows the port.
 * Commands of an embedding program run in the caller's thread. Both hold engine.control_lock
 * meanwhile.
 *
 *	connection/	the socket in the file system, connections and the processes behind them
 *	command.c	one message: checked, dispatched, answered; commands/ and cm/ execute
 *	objects.c	handles; domain.c, token.c: what processes may share
 *	share/		what each user may have
 *	ending/		the ends of commands, contexts and programs, which wait for copies
 *	network/	own addresses, and where packets for an address go
 *	files/		the device in the file system
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include "control/call.h"
#include "control/commands/commands.h"
#include "control/connection/connection.h"
#include "control/files/device_files.h"
#include "control/network/network.h"
#include "control/share/disposal.h"
#include "control/watch.h"
#include "engine/uroce.h"
#include "lcore/capture/capture.h"

#define CONTROL_BUCKETS 1024u

struct capturing;
struct cm_manager;
struct destinations;
struct neighbour_agent;
struct peer_table;
struct left_files;
struct porters;

struct control {
	struct engine *engine;
	pthread_t thread;
	bool thread_runs;
	int epoll_fd;
	struct watch wake; /* engine.control_fd */
	uint32_t stop; /* atomic */
	struct listener listener;
	LIST_HEAD(, connection) connections;
	uint32_t connection_count;
	LIST_HEAD(, connection) parked; /* settle.c, as the next two */
	LIST_HEAD(, grave) graves;
	uint32_t grave_count;
	LIST_HEAD(, bind_wait) binds; /* binds.c */
	nanotime settle_at;
	struct neighbour_agent *neighbours; /* NULL: nothing to resolve */
	struct destinations *destinations; /* NULL likewise */
	struct peer_table *peers;
	uint64_t peers_taken; /* connections refused with REASON_PEER_TAKEN */
	struct uroce_options options;
	char name[32];
	bool owns_pool;
	uint32_t next_lcore; /* round robin of queue pairs */
	uint32_t placed[LIMIT_LCORES]; /* connected queue pairs of each lcore: placing.h */
	uint32_t next_domain; /* number */
	uint64_t domain_walks; /* the last walk's number: each walk visits a domain once */
	LIST_HEAD(, domain) domains[CONTROL_BUCKETS]; /* by number */
	LIST_HEAD(, context) tokens[CONTROL_BUCKETS]; /* by inode */
	struct users users;
	struct disposal disposal;
	TAILQ_HEAD(ending_list, client_objects) ending; /* clients */
	nanotime ending_at; /* the next slice */
	nanotime beat_at;
	nanotime refresh_at;
	nanotime neighbours_at;
	nanotime empty_since; /* when the last client left */
	bool addresses_late; /* no descriptor was left to ask the host for its addresses */
	uint32_t idle_expired; /* atomic */
	bool link_up;
	uint64_t links_lost; /* how often it went down */
	struct mnl_socket *host_events; /* address changes of the host; NULL: a port, or --ip */
	bool main_thread_runs; /* main_thread runs and polls the main lcore */
	pthread_t main_thread;
	uint32_t launched; /* lcores that uroce_start() gave to threads */
	/* atomic: a bit for each lcore that a thread or a service polls; UINT32_MAX: uroce_start() */
	uint32_t polled;
	uint32_t service[LIMIT_LCORES]; /* its number + 1, 0: none */
	bool registered; /* libibverbs.so.1 of this process lists it */
	void *key_memory;
	LIST_HEAD(, engine_xrcd) xrcds;
	struct handle_table srq_numbers; /* its slots are engine.srq */
	uint32_t srq_generation;
	struct cm_manager *cm;
	struct capture copies; /* engine.capture, if there is a capture or a trace */
	struct capturing *capturing; /* cmd_capture.c; NULL: no capture */
	struct trace *trace; /* cmd_trace.c; NULL: there is none */
	struct gid trace_peer; /* of its queue pair; all zero: none */
	struct porters *porters; /* NULL: no socket */
	struct left_files *left; /* NULL: inotify is not available */
};

/* Opens what the thread needs, and then the thread; stop and close undo them. */
int control_open(struct engine *e, const struct uroce_options *o, char *why, size_t why_size);
int control_start(struct engine *e, char *why, size_t why_size);
void control_stop(struct engine *e);
void control_close(struct engine *e);

#endif
