/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace that an engine keeps (protocol/command_trace.h): beginning, reading and ending it. */
#ifndef APPS_TRACE_KEPT_H
#define APPS_TRACE_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/command.h"

/* The kept packets, oldest first. */
struct kept_trace {
	struct reply_trace about;
	struct traced_packet *packet; /* about.count */
};

/*
 * All ask over a connection of engine_connect(). 0, or an errno and one line in `why`. `packets` to be
 * kept of each lcore.
 */
int kept_start(int fd, uint32_t qpn, uint32_t packets, char *why, size_t why_size);
int kept_stop(int fd, char *why, size_t why_size);
/* The caller calls kept_free() in the end. */
int kept_read(int fd, struct kept_trace *k, char *why, size_t why_size);
void kept_free(struct kept_trace *k);

/* The last `most` of them (0: all) as lines on stdout. */
void kept_print(const struct kept_trace *k, uint32_t most);
/* Likewise, as a file for Wireshark. 0 or an errno. */
int kept_save(const struct kept_trace *k, uint32_t most, const char *path);

#endif
