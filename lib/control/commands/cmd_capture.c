/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capture of frames: one at a time, from its command to the end of its connection. The file is the
 * engine's: sealed, so that it cannot be cut under an lcore, and in memory before an lcore writes
 * to it, so that none waits for a page.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/control.h"
#include "control/network/peers.h"
#include "lcore/capture/capture.h"

struct capturing {
	struct connection *owner;
	void *memory;
	size_t octets;
};

static int check_wish(struct call *call, const struct request_capture *r)
{
	const struct capturing *other = call->engine->control->capturing;

	if (call->connection == NULL || !call_sees_all(call))
		return call_fail(
			call, EPERM,
			"only root and the engine's user may capture: frames of all users are in it");
	if (other != NULL)
		return call_fail(call, EBUSY, "process %d is already capturing",
				 (int)other->owner->pid);
	if (r->snap < LIMIT_CAPTURE_SNAP_MIN || r->snap > LIMIT_CAPTURE_SNAP)
		return call_fail(call, EINVAL, "snap length %u: must be in %u .. %u", r->snap,
				 LIMIT_CAPTURE_SNAP_MIN, LIMIT_CAPTURE_SNAP);
	if (r->ring < LIMIT_CAPTURE_RING_MIN || r->ring > LIMIT_CAPTURE_RING_MAX ||
	    (r->ring & (r->ring - 1)) != 0)
		return call_fail(call, EINVAL,
				 "ring of %u octets: must be a power of two in %u .. %u", r->ring,
				 LIMIT_CAPTURE_RING_MIN, LIMIT_CAPTURE_RING_MAX);
	return 0;
}

/* The file, mapped; *fd is its descriptor. 0 or an errno. */
static int make_file(struct capturing *c, int *fd)
{
	int error;

	*fd = memfd_create("uroce-capture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return errno;
	if (ftruncate(*fd, (off_t)c->octets) == 0 &&
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
		c->memory = mmap(NULL, c->octets, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
				 *fd, 0);
		if (c->memory != MAP_FAILED)
			return 0;
	}
	error = errno;
	close(*fd);
	return error;
}

void capture_change(struct engine *e)
{
	struct capture *w = &e->control->copies;

	/* pairs with capture_frames */
	__atomic_store_n(&e->capture, w->snap != 0 || w->trace != NULL ? w : NULL,
			 __ATOMIC_RELEASE);
}

int cmd_capture(struct call *call)
{
	const struct request_capture *r = (const struct request_capture *)call->request;
	struct reply_capture *reply = (struct reply_capture *)&call->reply;
	struct engine *e = call->engine;
	int error = check_wish(call, r), fd;
	struct capturing *c;

	if (error != 0)
		return error;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return ENOMEM;
	c->octets = capture_octets(e->lcores, r->ring);
	error = make_file(c, &fd);
	if (error != 0) {
		free(c);
		return call_fail(call, error, "no memory for %u rings of %u octets", e->lcores,
				 r->ring);
	}
	c->owner = call->connection;
	for (uint32_t i = 0; i < e->lcores; i++)
		capture_ring_init(&e->control->copies.ring[i], c->memory, i, r->ring);
	e->control->capturing = c;
	/* pairs with capture_copy */
	__atomic_store_n(&e->control->copies.snap, r->snap, __ATOMIC_RELEASE);
	capture_change(e);
	reply->rings = e->lcores;
	if (e->port != NULL)
		memcpy(reply->port, e->port->name, sizeof(reply->port));
	call->out.fd[call->out.count++] = fd;
	return 0;
}

void capture_end(struct engine *e, const struct connection *owner)
{
	struct capturing *c = e->control->capturing;

	if (c == NULL || c->owner != owner)
		return;
	__atomic_store_n(&e->control->copies.snap, 0, __ATOMIC_RELEASE);
	capture_change(e);
	engine_grace_period(e);
	e->control->capturing = NULL;
	munmap(c->memory, c->octets);
	free(c);
}
