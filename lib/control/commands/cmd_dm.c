/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory (ibv_alloc_dm(3)): engine memory, one memfd each, which the program maps too. The
 * memfd is sealed against shrinking, so that neither side's access can fail. A region of it is one
 * direct piece.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "control/control.h"

#define PAGE  UINT64_C(4096)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define ACCESS_OF_DM                                                                            \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | \
	 ACCESS_MW_BIND | ACCESS_ZERO_BASED | ACCESS_OPTIONAL_RANGE)

static_assert(PAGE == 1u << DM_LOG_ALIGN_MAX, "mappings begin at pages");

struct share {
	enum resource resource;
	uint64_t n;
};

#define SHARES 4u

/* The engine resources that it takes. */
static void shares_of(const struct dm_memory *m, struct share s[SHARES])
{
	s[0] = (struct share){ RESOURCE_DM_OCTETS, m->octets };
	s[1] = (struct share){ RESOURCE_ADDRESSES, m->octets };
	s[2] = (struct share){ RESOURCE_MAPPINGS, 1 };
	s[3] = (struct share){ RESOURCE_DESCRIPTORS, 1 };
}

static void memory_give_share(struct users *all, const struct dm_memory *m)
{
	struct share s[SHARES];

	shares_of(m, s);
	for (uint32_t i = 0; i < SHARES; i++)
		user_give(all, m->user, s[i].resource, s[i].n);
}

/* 0, or ENOMEM with a sentence in the reply. */
static int memory_take_share(struct call *call, const struct dm_memory *m)
{
	struct users *all = &call->engine->control->users;
	struct share s[SHARES];

	shares_of(m, s);
	for (uint32_t i = 0; i < SHARES; i++) {
		if (user_take(all, m->user, s[i].resource, s[i].n))
			continue;
		user_explain(all, m->user, s[i].resource, call->reply.why, sizeof(call->reply.why));
		while (i-- > 0)
			user_give(all, m->user, s[i].resource, s[i].n);
		return ENOMEM;
	}
	return 0;
}

static void memory_drop(struct engine *e, struct dm_memory *m)
{
	if (--m->handles > 0)
		return;
	munmap(m->base, m->octets);
	close(m->fd);
	memory_give_share(&e->control->users, m);
	user_drop(m->user);
	free(m);
}

/* A sealed file of that many octets, or -1 with errno. */
static int make_file(uint64_t octets)
{
	int fd = memfd_create("uroce-dm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)octets) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int memory_map(struct call *call, struct dm_memory *m)
{
	int error;

	m->fd = make_file(m->octets);
	m->base = m->fd < 0 ? MAP_FAILED
			    : mmap(NULL, m->octets, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_NORESERVE, m->fd, 0);
	if (m->base != MAP_FAILED)
		return 0;
	error = errno == EMFILE || errno == ENFILE ? ENOMEM : errno;
	if (m->fd >= 0)
		close(m->fd);
	return call_fail(call, error, "the engine cannot create device memory");
}

static int memory_create(struct call *call, uint64_t length, struct dm_memory **out)
{
	struct dm_memory *m = calloc(1, sizeof(*m));
	int error;

	if (m == NULL)
		return ENOMEM;
	m->handles = 1;
	m->length = length;
	m->octets = (length + PAGE - 1) & ~(PAGE - 1);
	m->user = call->client->objects->account.user;
	error = memory_take_share(call, m);
	if (error == 0) {
		error = memory_map(call, m);
		if (error != 0)
			memory_give_share(&call->engine->control->users, m);
	}
	if (error != 0) {
		free(m);
		return error;
	}
	user_hold(m->user);
	*out = m;
	return 0;
}

static void describe_dm(struct call *call, const struct dm *d, int fd)
{
	struct reply_dm *reply = (struct reply_dm *)&call->reply;

	reply->handle = d->handle;
	reply->length = d->memory->length;
	call->out.fd[call->out.count++] = fd;
}

int dm_create(struct call *call, uint32_t context, struct dm_memory *of)
{
	struct client_objects *o = call->client->objects;
	struct handle_table *t = &o->table[OBJECT_DM];
	struct dm *d;
	int fd, error;

	if (o->dm_octets + of->octets > LIMIT_CLIENT_DM_BYTES)
		return call_fail(call, ENOMEM, "the program has %llu octets of device memory",
				 (unsigned long long)o->dm_octets);
	fd = fcntl(of->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return call_fail(call, ENOMEM, "the engine has no file descriptors left");
	d = calloc(1, sizeof(*d));
	error = d == NULL ? ENOMEM : 0;
	if (error == 0) {
		d->handle = handle_reserve(t);
		error = d->handle != 0 ? 0 : call_no_handle(call, OBJECT_DM);
	}
	if (error != 0) {
		close(fd);
		free(d);
		return error;
	}
	d->context = context;
	d->memory = of;
	of->handles++;
	o->dm_octets += of->octets;
	handle_publish(t, d->handle, d);
	describe_dm(call, d, fd);
	return 0;
}

int cmd_alloc_dm(struct call *call)
{
	const struct request_alloc_dm *r = (const struct request_alloc_dm *)call->request;
	struct dm_memory *m;
	int error;

	if (object_find(call->client, OBJECT_CONTEXT, r->context) == NULL)
		return call_fail(call, EINVAL, "no such context");
	if (r->length == 0 || r->length > LIMIT_DM_BYTES)
		return call_fail(call, EINVAL, "the size of device memory must be 1 .. %llu octets",
				 (unsigned long long)LIMIT_DM_BYTES);
	if (r->log_align > DM_LOG_ALIGN_MAX)
		return call_fail(call, EINVAL, "log_align_req %u exceeds %u", r->log_align,
				 DM_LOG_ALIGN_MAX);
	error = memory_create(call, r->length, &m);
	if (error != 0)
		return error;
	error = dm_create(call, r->context, m);
	memory_drop(call->engine, m);
	return error;
}

void dm_free(struct client *c, struct dm *d)
{
	struct handle_table *t = &c->objects->table[OBJECT_DM];

	handle_withdraw(t, d->handle);
	handle_free(t, d->handle);
	c->objects->dm_octets -= d->memory->octets;
	memory_drop(c->engine, d->memory);
	free(d);
}

int cmd_free_dm(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct dm *d = object_find(call->client, OBJECT_DM, r->handle);

	if (d == NULL)
		return call_fail(call, EINVAL, "no such device memory");
	if (d->users != 0)
		return call_fail(call, EBUSY, "%u regions use the device memory", d->users);
	dm_free(call->client, d);
	return 0;
}

static int check_reg_dm_mr(struct call *call, const struct request_reg_dm_mr *r)
{
	const struct pd *p = object_find(call->client, OBJECT_PD, r->pd);
	const struct dm *d = object_find(call->client, OBJECT_DM, r->dm);

	if (p == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	if (d == NULL || d->context != p->context)
		return call_fail(call, EINVAL, "no such device memory in this context");
	if (!range_inside(r->offset, r->length, d->memory->length))
		return call_fail(call, EINVAL, "the range is outside the device memory");
	if (!(r->access & ACCESS_ZERO_BASED))
		return call_fail(call, EINVAL, "device memory needs IBV_ACCESS_ZERO_BASED");
	if (r->access & ~(uint32_t)ACCESS_OF_DM)
		return call_fail(call, EINVAL,
				 "access flags 0x%x are not available for device memory",
				 r->access & ~(uint32_t)ACCESS_OF_DM);
	if ((r->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) &&
	    !(r->access & ACCESS_LOCAL_WRITE))
		return call_fail(call, EINVAL,
				 "IBV_ACCESS_REMOTE_WRITE and _ATOMIC need IBV_ACCESS_LOCAL_WRITE");
	return 0;
}

/* A region of 0 octets is allowed, as programs register computed parts. */
static int build(struct call *call, struct mr *m, const struct request_reg_dm_mr *r)
{
	struct region *region = calloc(1, sizeof(*region) + sizeof(region->piece[0]));
	int error;

	m->region = region;
	if (region == NULL)
		return ENOMEM;
	error = key_give(call, &m->key);
	if (error != 0)
		return error;
	region->key = m->key;
	region->pd = m->pd->number;
	region->access = r->access;
	region->client = call->client->number;
	region->context = m->context;
	region->length = r->length;
	region->pieces = 1;
	region->piece[0].direct = m->dm->memory->base + r->offset;
	return 0;
}

int cmd_reg_dm_mr(struct call *call)
{
	const struct request_reg_dm_mr *r = (const struct request_reg_dm_mr *)call->request;
	struct handle_table *t = &call->client->objects->table[OBJECT_MR];
	struct reply_reg_mr *reply = (struct reply_reg_mr *)&call->reply;
	int error = check_reg_dm_mr(call, r);
	struct mr *m;

	if (error != 0)
		return error;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return ENOMEM;
	m->pd = object_find(call->client, OBJECT_PD, r->pd);
	m->dm = object_find(call->client, OBJECT_DM, r->dm);
	m->context = m->pd->context;
	m->handle = handle_reserve(t);
	error = m->handle == 0 ? call_no_handle(call, OBJECT_MR) : build(call, m, r);
	if (error != 0) {
		if (m->handle != 0)
			handle_free(t, m->handle);
		free(m->region);
		free(m);
		return error;
	}
	m->pd->users++;
	m->dm->users++;
	call->engine->mr_count++;
	call->engine->mr_made++;
	key_publish(&call->engine->keys, m->key, m->region);
	handle_publish(t, m->handle, m);
	reply->handle = m->handle;
	reply->lkey = m->key;
	reply->rkey = m->key;
	return 0;
}
