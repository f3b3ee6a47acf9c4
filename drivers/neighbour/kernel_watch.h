/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares the kernel's announcements of neighbours and routes with the answers that it gave us, to
 * find out whether a flow that was made from an answer must be made again. Neighbours come and go
 * in the kernel's table as the kernel's own traffic needs them. A flow meanwhile uses the last
 * answer. Only another MAC address or another route is a change.
 */
#ifndef DRIVERS_NEIGHBOUR_KERNEL_WATCH_H
#define DRIVERS_NEIGHBOUR_KERNEL_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"
#include "config/limits.h"
#include "wire/envelope.h"

struct mnl_socket;

struct watched {
	struct gid hop;
	struct mac mac; /* the last one, which flows may still have */
	bool used;
	bool failed; /* the kernel's last answer was that it has none */
};

struct kernel_watch {
	struct mnl_socket *socket; /* socket for rtnetlink's announcements; NULL: there is none */
	uint32_t ifindex;
	bool overflowed; /* an answer was forgotten, so any announcement may be about it */
	bool answers; /* an answer was another one than before, and that was not reported yet */
	bool routes; /* routes have changed, and that was not reported yet */
	nanotime routes_at; /* when it may be reported */
	struct watched slot[LIMIT_WATCH_SLOTS];
};

void kernel_watch_open(struct kernel_watch *w, uint32_t ifindex);
void kernel_watch_close(struct kernel_watch *w);

/*
 * put: the kernel answered that this hop has this MAC address. forget: the kernel answered that it
 * has none. get: the last known MAC address of the hop. False: none is known.
 */
void kernel_watch_put(struct kernel_watch *w, const struct gid *hop, const struct mac *mac);
void kernel_watch_forget(struct kernel_watch *w, const struct gid *hop);
bool kernel_watch_get(const struct kernel_watch *w, const struct gid *hop, struct mac *mac);

/*
 * Reads what was announced since the last call. True: an answer may have changed. `lost` is called
 * for each remembered hop that the kernel has dropped, so that the caller can make the kernel look
 * for the hop again.
 */
bool kernel_watch_changed(struct kernel_watch *w, nanotime now,
			  void (*lost)(void *arg, const struct gid *hop), void *arg);

/*
 * Reads one datagram of announcements, as the socket gave it. `lost` is as above. For
 * kernel_watch_changed.
 */
bool kernel_watch_read(struct kernel_watch *w, const void *octets, size_t length,
		       void (*lost)(void *arg, const struct gid *hop), void *arg);

#endif
