/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains: ibv_open_xrcd(3), shared between processes by the inode of a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "control/control.h"
#include "control/connection/porters.h"
#include "lcore/srq.h"
#include "lcore/xrc.h"

/*
 * The identity of the file. Only from what the kernel knows already: a file system must not block
 * the engine.
 */
static int identify(int fd, dev_t *device, ino_t *inode)
{
	struct statx s;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &s) != 0)
		return errno;
	*device = makedev(s.stx_dev_major, s.stx_dev_minor);
	*inode = s.stx_ino;
	return 0;
}

static struct engine_xrcd *domain_of_file(struct engine *e, dev_t device, ino_t inode)
{
	struct engine_xrcd *d;

	LIST_FOREACH(d, &e->control->xrcds, link)
	if (d->fd >= 0 && d->device == device && d->inode == inode)
		return d;
	return NULL;
}

/* An O_PATH descriptor keeps the inode in use, so that no other file gets its number. */
static int hold_inode(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_PATH | O_CLOEXEC);
}

/* A file whose close may block stays with the porter that received it. */
static int hold_file(struct call *call, int fd)
{
	return fd >= 0 ? hold_inode(fd) : porter_keep(call);
}

/*
 * Keeps the domain's file; the descriptor counts for the user who created the domain. 0 or an
 * errno.
 */
static int domain_hold(struct call *call, struct engine_xrcd *d, int fd)
{
	struct users *all = &call->engine->control->users;

	d->fd = -1;
	if (call->in.count == 0)
		return 0;
	if (!user_take(all, d->user, RESOURCE_DESCRIPTORS, 1)) {
		user_explain(all, d->user, RESOURCE_DESCRIPTORS, call->reply.why,
			     sizeof(call->reply.why));
		return ENOMEM;
	}
	d->fd = hold_file(call, fd);
	if (d->fd >= 0)
		return 0;
	user_give(all, d->user, RESOURCE_DESCRIPTORS, 1);
	return call_fail(
		call, ENOMEM,
		"the engine has no file descriptors left, or this user has the limit of %u files",
		LIMIT_USER_FILES);
}

static int domain_create(struct call *call, int fd, dev_t device, ino_t inode,
			 struct engine_xrcd **out)
{
	struct engine_xrcd *d = calloc(1, sizeof(*d));
	int error;

	if (d == NULL)
		return ENOMEM;
	d->user = call->client->objects->account.user;
	error = domain_hold(call, d, fd);
	if (error != 0) {
		free(d);
		return error;
	}
	user_hold(d->user);
	d->device = device;
	d->inode = inode;
	LIST_INSERT_HEAD(&call->engine->control->xrcds, d, link);
	*out = d;
	return 0;
}

static void domain_drop(struct engine *e, struct engine_xrcd *d)
{
	if (--d->handles > 0)
		return;
	LIST_REMOVE(d, link);
	if (d->fd >= 0) {
		dispose_descriptor(&e->control->disposal, d->fd);
		user_give(&e->control->users, d->user, RESOURCE_DESCRIPTORS, 1);
	}
	user_drop(d->user);
	free(d);
}

/* The domain that the arguments name, created if the flags say so. Errno values as in Linux. */
static int domain_open(struct call *call, uint32_t flags, struct engine_xrcd **out)
{
	struct engine *e = call->engine;
	int fd = call->in.count == 1 ? call->in.fd[0] : -1;
	dev_t device = 0;
	ino_t inode = 0;
	int error;

	*out = NULL;
	if (call->in.count == 1) {
		device = call->file.device;
		inode = call->file.inode;
		error = fd >= 0 ? identify(fd, &device, &inode) : call->file.known ? 0 : EBADF;
		if (error != 0)
			return call_fail(call, error, "cannot identify the descriptor's file");
		*out = domain_of_file(e, device, inode);
	}
	if (*out != NULL && (flags & XRCD_EXCLUSIVE))
		return call_fail(call, EINVAL,
				 "the file already has an XRC domain, and O_EXCL is set");
	if (*out == NULL && !(flags & XRCD_CREATE))
		return call_fail(call, EAGAIN, "no such XRC domain, and O_CREAT is not set");
	return *out != NULL ? 0 : domain_create(call, fd, device, inode, out);
}

int cmd_open_xrcd(struct call *call)
{
	const struct request_open_xrcd *r = (const struct request_open_xrcd *)call->request;
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	struct handle_table *t = &call->client->objects->table[OBJECT_XRCD];
	struct engine_xrcd *d = NULL;
	struct xrcd *x;
	int error;

	if (object_find(call->client, OBJECT_CONTEXT, r->context) == NULL)
		return call_fail(call, EINVAL, "no such context");
	if (r->flags & ~(uint32_t)(XRCD_CREATE | XRCD_EXCLUSIVE))
		return call_fail(call, EINVAL, "unknown flags %#x", r->flags);
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return ENOMEM;
	x->handle = handle_reserve(t);
	error = x->handle != 0 ? domain_open(call, r->flags, &d)
			       : call_no_handle(call, OBJECT_XRCD);
	if (error != 0) {
		if (x->handle != 0)
			handle_free(t, x->handle);
		free(x);
		return error;
	}
	x->context = r->context;
	x->client = call->client;
	x->domain = d;
	d->handles++;
	LIST_INSERT_HEAD(&d->holders, x, domain_link);
	handle_publish(t, x->handle, x);
	error = xrcd_share(x);
	if (error != 0) {
		xrcd_free(call->client, x);
		return call_fail(call, error,
				 "the engine cannot create a thread for the program's copies");
	}
	reply->handle = x->handle;
	return 0;
}

void xrcd_free(struct client *c, struct xrcd *x)
{
	struct handle_table *t = &c->objects->table[OBJECT_XRCD];

	handle_withdraw(t, x->handle);
	handle_free(t, x->handle);
	LIST_REMOVE(x, domain_link);
	domain_drop(c->engine, x->domain);
	free(x);
}

int cmd_close_xrcd(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct xrcd *x = object_find(call->client, OBJECT_XRCD, r->handle);

	if (x == NULL)
		return call_fail(call, EINVAL, "no such XRC domain");
	if (x->users != 0)
		return call_fail(call, EBUSY, "%u SRQs or queue pairs use the XRC domain",
				 x->users);
	xrcd_free(call->client, x);
	return 0;
}
