/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands out of an input: any contents, but handles mostly of existing objects. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "engine_rig.h"

static const uint16_t lengths[COMMAND_COUNT] = {
#define X(NAME, request, reply) sizeof(struct request),
	COMMANDS(X)
#undef X
};

/* Which member of which request names an object of which kind. */
static const struct {
	uint16_t command, offset;
	uint8_t kind;
} rows[] = {
#define HANDLE(NAME, KIND)                                                             \
	{                                                                              \
		COMMAND_##NAME, offsetof(struct request_handle, handle), OBJECT_##KIND \
	}
#define MEMBER(NAME, request, member, KIND)                                               \
	{                                                                                 \
		COMMAND_##NAME, offsetof(struct request_##request, member), OBJECT_##KIND \
	}
	HANDLE(CLOSE_CONTEXT, CONTEXT),
	HANDLE(ALLOC_PD, CONTEXT),
	HANDLE(DEALLOC_PD, PD),
	MEMBER(REG_MR, reg_mr, pd, PD),
	HANDLE(DEREG_MR, MR),
	MEMBER(REREG_MR, rereg_mr, mr, MR),
	MEMBER(REREG_MR, rereg_mr, pd, PD),
	HANDLE(ALLOC_NULL_MR, PD),
	MEMBER(ADVISE_MR, advise_mr, pd, PD),
	MEMBER(ALLOC_MW, alloc_mw, pd, PD),
	HANDLE(DEALLOC_MW, MW),
	HANDLE(CREATE_CHANNEL, CONTEXT),
	HANDLE(DESTROY_CHANNEL, CHANNEL),
	MEMBER(CREATE_CQ, create_cq, context, CONTEXT),
	MEMBER(CREATE_CQ, create_cq, channel, CHANNEL),
	MEMBER(RESIZE_CQ, resize_cq, cq, CQ),
	HANDLE(CQ_RING_LEFT, CQ),
	MEMBER(MODIFY_CQ, modify_cq, cq, CQ),
	HANDLE(WAKE_CQ, CQ),
	HANDLE(DESTROY_CQ, CQ),
	MEMBER(CREATE_QP, create_qp, pd, PD),
	MEMBER(CREATE_QP, create_qp, send_cq, CQ),
	MEMBER(CREATE_QP, create_qp, recv_cq, CQ),
	MEMBER(CREATE_QP, create_qp, srq, SRQ),
	MEMBER(CREATE_QP, create_qp, xrcd, XRCD),
	MEMBER(MODIFY_QP, modify_qp, qp, QP),
	HANDLE(QUERY_QP, QP),
	HANDLE(DESTROY_QP, QP),
	MEMBER(CREATE_AH, create_ah, pd, PD),
	HANDLE(QUERY_AH, AH),
	HANDLE(DESTROY_AH, AH),
	MEMBER(ATTACH_MCAST, mcast, qp, QP),
	MEMBER(DETACH_MCAST, mcast, qp, QP),
	MEMBER(ALLOC_DM, alloc_dm, context, CONTEXT),
	HANDLE(FREE_DM, DM),
	MEMBER(REG_DM_MR, reg_dm_mr, pd, PD),
	MEMBER(REG_DM_MR, reg_dm_mr, dm, DM),
	MEMBER(IMPORT_PD, import, into, CONTEXT),
	MEMBER(IMPORT_PD, import, handle, PD),
	MEMBER(IMPORT_MR, import, into, PD),
	MEMBER(IMPORT_MR, import, handle, MR),
	HANDLE(UNIMPORT_MR, MR_IMPORT),
	MEMBER(IMPORT_DM, import, into, CONTEXT),
	MEMBER(IMPORT_DM, import, handle, DM),
	MEMBER(CREATE_SRQ, create_srq, pd, PD),
	MEMBER(CREATE_SRQ, create_srq, cq, CQ),
	MEMBER(CREATE_SRQ, create_srq, xrcd, XRCD),
	MEMBER(MODIFY_SRQ, modify_srq, srq, SRQ),
	HANDLE(QUERY_SRQ, SRQ),
	HANDLE(DESTROY_SRQ, SRQ),
	MEMBER(OPEN_XRCD, open_xrcd, context, CONTEXT),
	HANDLE(CLOSE_XRCD, XRCD),
	MEMBER(OPEN_QP, open_qp, xrcd, XRCD),
	MEMBER(MODIFY_WQ, modify_wq, wq, QP),
	MEMBER(CREATE_RWQ_TABLE, create_rwq_table, context, CONTEXT),
	MEMBER(CREATE_RWQ_TABLE, create_rwq_table, wq[0], QP),
	MEMBER(CREATE_RWQ_TABLE, create_rwq_table, wq[1], QP),
	HANDLE(DESTROY_RWQ_TABLE, RWQ_TABLE),
	MEMBER(CREATE_RSS, create_rss, pd, PD),
	MEMBER(CREATE_RSS, create_rss, table, RWQ_TABLE),
	HANDLE(DESTROY_RSS, RSS),
	MEMBER(CREATE_FLOW, create_flow, qp, QP),
	MEMBER(CREATE_FLOW, create_flow, rss, RSS),
	MEMBER(CREATE_FLOW, create_flow, counters, COUNTERS),
	HANDLE(DESTROY_FLOW, FLOW),
	HANDLE(CREATE_COUNTERS, CONTEXT),
	MEMBER(ATTACH_COUNTERS, attach_counters, counters, COUNTERS),
	MEMBER(ATTACH_COUNTERS, attach_counters, flow, FLOW),
	HANDLE(READ_COUNTERS, COUNTERS),
	HANDLE(DESTROY_COUNTERS, COUNTERS),
	HANDLE(CM_DESTROY_CHANNEL, CM_CHANNEL),
	MEMBER(CM_CREATE_ID, cm_create_id, channel, CM_CHANNEL),
	HANDLE(CM_DESTROY_ID, CM_ID),
	MEMBER(CM_BIND, cm_bind, id, CM_ID),
	MEMBER(CM_RESOLVE_ADDR, cm_resolve, id, CM_ID),
	MEMBER(CM_RESOLVE_ROUTE, cm_timeout, id, CM_ID),
	MEMBER(CM_LISTEN, cm_listen, id, CM_ID),
	MEMBER(CM_CONNECT, cm_connect, id, CM_ID),
	MEMBER(CM_CONNECT, cm_connect, parameters.qp, QP),
	MEMBER(CM_ACCEPT, cm_connect, id, CM_ID),
	MEMBER(CM_ACCEPT, cm_connect, parameters.qp, QP),
	MEMBER(CM_REJECT, cm_reject, id, CM_ID),
	HANDLE(CM_DISCONNECT, CM_ID),
	HANDLE(CM_ESTABLISH, CM_ID),
	MEMBER(CM_NOTIFY, cm_notify, id, CM_ID),
	MEMBER(CM_JOIN, cm_join, id, CM_ID),
	MEMBER(CM_LEAVE, cm_leave, id, CM_ID),
	MEMBER(CM_LEAVE, cm_leave, join, CM_JOIN),
	MEMBER(CM_MIGRATE, cm_migrate, id, CM_ID),
	MEMBER(CM_MIGRATE, cm_migrate, channel, CM_CHANNEL),
	MEMBER(CM_SET_OPTION, cm_option, id, CM_ID),
	HANDLE(CM_QUERY, CM_ID),
	MEMBER(CM_INIT_QP_ATTR, cm_init_qp_attr, id, CM_ID),
	MEMBER(CM_MODIFY_QP, cm_modify_qp, id, CM_ID),
	MEMBER(CM_MODIFY_QP, cm_modify_qp, qp, QP),
	HANDLE(CM_GET_EVENT, CM_CHANNEL),
};

/* The kind of object whose handle is the first member of the reply. */
static const struct {
	uint16_t command;
	uint8_t kind;
} makes[] = {
#define MAKES(NAME, KIND)                     \
	{                                     \
		COMMAND_##NAME, OBJECT_##KIND \
	}
	MAKES(OPEN_CONTEXT, CONTEXT),
	MAKES(IMPORT_CONTEXT, CONTEXT),
	MAKES(ALLOC_PD, PD),
	MAKES(IMPORT_PD, PD),
	MAKES(REG_MR, MR),
	MAKES(REG_DM_MR, MR),
	MAKES(ALLOC_NULL_MR, MR),
	MAKES(IMPORT_MR, MR_IMPORT),
	MAKES(ALLOC_MW, MW),
	MAKES(CREATE_CHANNEL, CHANNEL),
	MAKES(CREATE_CQ, CQ),
	MAKES(CREATE_QP, QP),
	MAKES(OPEN_QP, QP),
	MAKES(CREATE_AH, AH),
	MAKES(ALLOC_DM, DM),
	MAKES(IMPORT_DM, DM),
	MAKES(CREATE_SRQ, SRQ),
	MAKES(OPEN_XRCD, XRCD),
	MAKES(CREATE_RWQ_TABLE, RWQ_TABLE),
	MAKES(CREATE_RSS, RSS),
	MAKES(CREATE_FLOW, FLOW),
	MAKES(CREATE_COUNTERS, COUNTERS),
	MAKES(CM_CREATE_CHANNEL, CM_CHANNEL),
	MAKES(CM_CREATE_ID, CM_ID),
	MAKES(CM_JOIN, CM_JOIN),
};

static void note_made(enum command what, const struct command_reply *r)
{
	const struct reply_handle *made = (const struct reply_handle *)(const void *)r;

	for (size_t i = 0; i < ARRAY_SIZE(makes); i++) {
		uint32_t kind = makes[i].kind;

		if (makes[i].command == (uint16_t)what && rig_mades[kind] < RIG_OBJECTS)
			rig_made[kind][rig_mades[kind]++] = made->handle;
	}
}

/* Mostly one that there is, sometimes whatever the input says, or 0. */
static void name_objects(struct input *in, enum command what, uint8_t *request)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t kind = rows[i].kind, handle;
		uint8_t which;

		if (rows[i].command != (uint16_t)what)
			continue;
		which = input_8(in);
		if (which >= 0xf8)
			continue;
		handle = rig_mades[kind] == 0 || which >= 0xf0
				 ? 0
				 : rig_made[kind][which % rig_mades[kind]];
		memcpy(request + rows[i].offset, &handle, sizeof(handle));
	}
}

/* ---- descriptors ---- */

static int sealed_file(size_t octets, int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, (off_t)octets) != 0 || fcntl(fd, F_ADD_SEALS, seals) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int descriptor(uint8_t what)
{
	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		return sealed_file(RIG_MEMORY_OCTETS, F_SEAL_SHRINK | F_SEAL_GROW);
	case 3:
		return sealed_file(4096, F_SEAL_SHRINK | F_SEAL_SEAL);
	case 4:
		return sealed_file(RIG_MEMORY_OCTETS, 0);
	case 5:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 6:
		return eventfd(0, EFD_CLOEXEC);
	default:
		return fcntl(arena_fd(rig_client->arena), F_DUPFD_CLOEXEC, 0);
	}
}

static void descriptors(struct input *in, struct carrier_descriptors *d)
{
	uint8_t count = input_8(in) % 3;

	for (uint8_t i = 0; i < count; i++) {
		d->fd[d->count] = descriptor(input_8(in));
		d->count += d->fd[d->count] >= 0;
	}
}

/* ---- contents ---- */

/* Attributes whose values are possible, so that queue pairs leave RESET. */
static void possible_path(struct qp_path *p)
{
	p->is_global = p->port_num = 1;
	p->sgid_index = 1;
	p->dgid = rig_address(p->dgid.octet[15] & 1 ? 2 : 1);
}

static void possible(enum command what, uint8_t *request)
{
	struct request_modify_qp *m = (void *)request;
	struct request_reg_mr *r = (void *)request;

	if (what == COMMAND_MODIFY_QP) {
		m->attributes.port_num = 1;
		m->attributes.pkey_index = 0;
		possible_path(&m->attributes.path);
	} else if (what == COMMAND_CREATE_AH) {
		possible_path(&((struct request_create_ah *)(void *)request)->path);
	} else if (what == COMMAND_RESOLVE_PATH) {
		possible_path(&((struct request_path *)(void *)request)->path);
	} else if (what == COMMAND_REG_MR) {
		r->address = r->iova = RIG_MEMORY + (r->address & 0xffff);
		r->length &= 0x1fff;
		r->access &= 0xfff;
	}
}

static size_t length_of(struct input *in, enum command what, size_t most)
{
	size_t length = lengths[what];
	uint8_t how = input_8(in);

	if (what == COMMAND_REG_MR || what == COMMAND_REREG_MR)
		length += how % 4 * sizeof(struct mr_backing);
	if (how >= 0xfc)
		length = input_16(in) % (most + 1);
	return MAX_OF(length, sizeof(struct command_request));
}

void rig_random_command_of(struct input *in, enum command from, enum command to)
{
	static uint8_t request[LIMIT_COMMAND_BYTES] __attribute__((aligned(8)));
	enum command what = from + input_8(in) % (uint32_t)(to - from + 1);
	size_t length = length_of(in, what, sizeof(request)), octets = input_8(in) * 2u;
	const size_t header = sizeof(struct command_request);
	struct carrier_descriptors d = { 0 };
	const struct command_reply *r;

	if (what == COMMAND_HELLO)
		return; /* needs a socket: tests/unit/engine/connection/control_identity_test.c */
	memset(request, 0, sizeof(request));
	input_take(in, request + header, MIN_OF(octets, sizeof(request) - header));
	if (input_8(in) < 0xc0)
		possible(what, request);
	name_objects(in, what, request);
	descriptors(in, &d);
	if (rig_command(what, request, length, &d, &r) == 0)
		note_made(what, r);
}

int rig_make(enum command what, void *request, size_t length, const struct command_reply **r)
{
	int error = rig_command(what, request, length, NULL, r);

	if (error == 0)
		note_made(what, *r);
	return error;
}

void rig_random_command(struct input *in)
{
	rig_random_command_of(in, 0, COMMAND_COUNT - 1);
}
