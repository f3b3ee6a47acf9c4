/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's announcements of neighbours and routes, beside the answers that it gave us: whether
 * a flow that was made of such an answer should be made again. Neighbours come and go in the
 * kernel's table as its own traffic wants them; ours goes on by the last answer meanwhile, and only
 * another MAC address or another route is a change.
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
	struct mac mac;
	bool used;
};

struct kernel_watch {
	struct mnl_socket *socket; /* rtnetlink's announcements; NULL: none */
	uint32_t ifindex;
	bool overflowed; /* an answer was forgotten: any announcement may be of it */
	bool routes; /* changed, not told yet */
	nanotime routes_at; /* when they may be told */
	struct watched slot[LIMIT_WATCH_SLOTS];
};

void kernel_watch_open(struct kernel_watch *w, uint32_t ifindex);
void kernel_watch_close(struct kernel_watch *w);

/* The kernel announced: this hop has this address; it has none; the last announcement about it. */
void kernel_watch_put(struct kernel_watch *w, const struct gid *hop, const struct mac *mac);
void kernel_watch_forget(struct kernel_watch *w, const struct gid *hop);
bool kernel_watch_get(const struct kernel_watch *w, const struct gid *hop, struct mac *mac);

/*
 * Reads what was announced since the last call. True: an answer may have changed. `lost` is told of
 * remembered hops that the kernel has dropped, so that the kernel can be made to look for them
 * again.
 */
bool kernel_watch_changed(struct kernel_watch *w, nanotime now,
			  void (*lost)(void *arg, const struct gid *hop), void *arg);

/* One datagram of announcements, as the socket gave it; *lost as above. For kernel_watch_changed. */
bool kernel_watch_read(struct kernel_watch *w, const void *octets, size_t length,
		       void (*lost)(void *arg, const struct gid *hop), void *arg);

#endif
