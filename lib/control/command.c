/* SPDX-License-Identifier: BSD-3-Clause */
/* One message of a client: checked as a whole, executed by its command, answered. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "control/cm/cm_control.h"
#include "control/control.h"
#include "control/commands/raw_control.h"

enum needs {
	OPEN_TO_ALL, /* changes nothing */
	NO_CLIENT_YET,
	A_CLIENT,
};

struct command_row {
	int (*execute)(struct call *call);
	enum needs needs;
	bool variable; /* octets may follow the request struct */
	uint32_t descriptors; /* at most; the command itself checks how many it needs */
};

static const struct command_row commands[COMMAND_COUNT] = {
	[COMMAND_DEVICE] = { cmd_device, OPEN_TO_ALL },
	[COMMAND_HELLO] = { cmd_hello, NO_CLIENT_YET, .descriptors = 1 },
	[COMMAND_OPEN_CONTEXT] = { cmd_open_context, A_CLIENT },
	[COMMAND_CLOSE_CONTEXT] = { cmd_close_context, A_CLIENT },
	[COMMAND_ALLOC_PD] = { cmd_alloc_pd, A_CLIENT },
	[COMMAND_DEALLOC_PD] = { cmd_dealloc_pd, A_CLIENT },
	[COMMAND_PROMOTED_FILE] = { cmd_promoted_file, A_CLIENT, .descriptors = 1 },
	[COMMAND_REG_MR] = { cmd_reg_mr, A_CLIENT, .variable = true,
			     .descriptors = LIMIT_COMMAND_FDS },
	[COMMAND_DEREG_MR] = { cmd_dereg_mr, A_CLIENT },
	[COMMAND_REREG_MR] = { cmd_rereg_mr, A_CLIENT, .variable = true,
			       .descriptors = LIMIT_COMMAND_FDS },
	[COMMAND_ALLOC_NULL_MR] = { cmd_alloc_null_mr, A_CLIENT },
	[COMMAND_ADVISE_MR] = { cmd_advise_mr, A_CLIENT },
	[COMMAND_ALLOC_MW] = { cmd_alloc_mw, A_CLIENT },
	[COMMAND_DEALLOC_MW] = { cmd_dealloc_mw, A_CLIENT },
	[COMMAND_CREATE_CHANNEL] = { cmd_create_channel, A_CLIENT },
	[COMMAND_DESTROY_CHANNEL] = { cmd_destroy_channel, A_CLIENT },
	[COMMAND_CREATE_CQ] = { cmd_create_cq, A_CLIENT },
	[COMMAND_RESIZE_CQ] = { cmd_resize_cq, A_CLIENT },
	[COMMAND_CQ_RING_LEFT] = { cmd_cq_ring_left, A_CLIENT },
	[COMMAND_MODIFY_CQ] = { cmd_modify_cq, A_CLIENT },
	[COMMAND_WAKE_CQ] = { cmd_wake_cq, A_CLIENT },
	[COMMAND_DESTROY_CQ] = { cmd_destroy_cq, A_CLIENT },
	[COMMAND_CREATE_QP] = { cmd_create_qp, A_CLIENT },
	[COMMAND_MODIFY_QP] = { cmd_modify_qp, A_CLIENT },
	[COMMAND_QUERY_QP] = { cmd_query_qp, A_CLIENT },
	[COMMAND_DESTROY_QP] = { cmd_destroy_qp, A_CLIENT },
	[COMMAND_CREATE_AH] = { cmd_create_ah, A_CLIENT },
	[COMMAND_QUERY_AH] = { cmd_query_ah, A_CLIENT },
	[COMMAND_DESTROY_AH] = { cmd_destroy_ah, A_CLIENT },
	[COMMAND_ATTACH_MCAST] = { cmd_attach_mcast, A_CLIENT },
	[COMMAND_DETACH_MCAST] = { cmd_detach_mcast, A_CLIENT },
	[COMMAND_RESOLVE_PATH] = { cmd_resolve_path, A_CLIENT },
	[COMMAND_ALLOC_DM] = { cmd_alloc_dm, A_CLIENT },
	[COMMAND_FREE_DM] = { cmd_free_dm, A_CLIENT },
	[COMMAND_REG_DM_MR] = { cmd_reg_dm_mr, A_CLIENT },
	[COMMAND_IMPORT_CONTEXT] = { cmd_import_context, A_CLIENT, .descriptors = 1 },
	[COMMAND_IMPORT_PD] = { cmd_import_pd, A_CLIENT },
	[COMMAND_IMPORT_MR] = { cmd_import_mr, A_CLIENT },
	[COMMAND_UNIMPORT_MR] = { cmd_unimport_mr, A_CLIENT },
	[COMMAND_IMPORT_DM] = { cmd_import_dm, A_CLIENT },
	[COMMAND_CREATE_SRQ] = { cmd_create_srq, A_CLIENT },
	[COMMAND_MODIFY_SRQ] = { cmd_modify_srq, A_CLIENT },
	[COMMAND_QUERY_SRQ] = { cmd_query_srq, A_CLIENT },
	[COMMAND_DESTROY_SRQ] = { cmd_destroy_srq, A_CLIENT },
	[COMMAND_MODIFY_WQ] = { cmd_modify_wq, A_CLIENT },
	[COMMAND_CREATE_RWQ_TABLE] = { cmd_create_rwq_table, A_CLIENT },
	[COMMAND_DESTROY_RWQ_TABLE] = { cmd_destroy_rwq_table, A_CLIENT },
	[COMMAND_CREATE_RSS] = { cmd_create_rss, A_CLIENT },
	[COMMAND_DESTROY_RSS] = { cmd_destroy_rss, A_CLIENT },
	[COMMAND_CREATE_FLOW] = { cmd_create_flow, A_CLIENT },
	[COMMAND_DESTROY_FLOW] = { cmd_destroy_flow, A_CLIENT },
	[COMMAND_CREATE_COUNTERS] = { cmd_create_counters, A_CLIENT },
	[COMMAND_ATTACH_COUNTERS] = { cmd_attach_counters, A_CLIENT },
	[COMMAND_READ_COUNTERS] = { cmd_read_counters, A_CLIENT },
	[COMMAND_DESTROY_COUNTERS] = { cmd_destroy_counters, A_CLIENT },
	[COMMAND_OPEN_XRCD] = { cmd_open_xrcd, A_CLIENT, .descriptors = 1 },
	[COMMAND_CLOSE_XRCD] = { cmd_close_xrcd, A_CLIENT },
	[COMMAND_OPEN_QP] = { cmd_open_qp, A_CLIENT },
	[COMMAND_STATISTICS] = { cmd_statistics, OPEN_TO_ALL },
	[COMMAND_CM_CREATE_CHANNEL] = { cmd_cm_create_channel, A_CLIENT },
	[COMMAND_CM_DESTROY_CHANNEL] = { cmd_cm_destroy_channel, A_CLIENT },
	[COMMAND_CM_CREATE_ID] = { cmd_cm_create_id, A_CLIENT },
	[COMMAND_CM_DESTROY_ID] = { cmd_cm_destroy_id, A_CLIENT },
	[COMMAND_CM_BIND] = { cmd_cm_bind, A_CLIENT },
	[COMMAND_CM_RESOLVE_ADDR] = { cmd_cm_resolve_addr, A_CLIENT },
	[COMMAND_CM_RESOLVE_ROUTE] = { cmd_cm_resolve_route, A_CLIENT },
	[COMMAND_CM_LISTEN] = { cmd_cm_listen, A_CLIENT },
	[COMMAND_CM_CONNECT] = { cmd_cm_connect, A_CLIENT },
	[COMMAND_CM_ACCEPT] = { cmd_cm_accept, A_CLIENT },
	[COMMAND_CM_REJECT] = { cmd_cm_reject, A_CLIENT },
	[COMMAND_CM_DISCONNECT] = { cmd_cm_disconnect, A_CLIENT },
	[COMMAND_CM_ESTABLISH] = { cmd_cm_establish, A_CLIENT },
	[COMMAND_CM_NOTIFY] = { cmd_cm_notify, A_CLIENT },
	[COMMAND_CM_JOIN] = { cmd_cm_join, A_CLIENT },
	[COMMAND_CM_LEAVE] = { cmd_cm_leave, A_CLIENT },
	[COMMAND_CM_MIGRATE] = { cmd_cm_migrate, A_CLIENT },
	[COMMAND_CM_SET_OPTION] = { cmd_cm_set_option, A_CLIENT },
	[COMMAND_CM_QUERY] = { cmd_cm_query, A_CLIENT },
	[COMMAND_CM_INIT_QP_ATTR] = { cmd_cm_init_qp_attr, A_CLIENT },
	[COMMAND_CM_MODIFY_QP] = { cmd_cm_modify_qp, A_CLIENT },
	[COMMAND_CM_GET_EVENT] = { cmd_cm_get_event, A_CLIENT },
	[COMMAND_CM_LIST] = { cmd_cm_list, OPEN_TO_ALL },
	[COMMAND_QP_LIST] = { cmd_qp_list, OPEN_TO_ALL },
	[COMMAND_MR_LIST] = { cmd_mr_list, OPEN_TO_ALL },
	[COMMAND_PROGRAM_LIST] = { cmd_program_list, OPEN_TO_ALL },
	[COMMAND_NEIGHBOUR_LIST] = { cmd_neighbour_list, OPEN_TO_ALL },
	[COMMAND_CAPTURE] = { cmd_capture, OPEN_TO_ALL }, /* it checks the caller itself */
	[COMMAND_PATH_LIST] = { cmd_path_list, OPEN_TO_ALL },
	[COMMAND_TRACE] = { cmd_trace, OPEN_TO_ALL }, /* it checks the caller itself */
	[COMMAND_CYCLES] = { cmd_cycles, OPEN_TO_ALL }, /* likewise */
	[COMMAND_LEAVE_PROMOTED] = { cmd_leave_promoted, A_CLIENT },
};

static const struct {
	size_t request, reply; /* octets */
} lengths[COMMAND_COUNT] = {
#define X(NAME, request, reply) [COMMAND_##NAME] = { sizeof(struct request), sizeof(struct reply) },
	COMMANDS(X)
#undef X
};

int call_fail(struct call *call, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(call->reply.why, sizeof(call->reply.why), format, args);
	va_end(args);
	return error;
}

static void fill_reply_header(struct call *call, int error)
{
	struct command_reply *r = &call->reply;
	bool whole = call->length >= sizeof(*call->request);

	r->magic = COMMAND_MAGIC;
	r->version = COMMAND_VERSION;
	r->command = whole ? call->request->command : 0;
	r->sequence = whole ? call->request->sequence : 0;
	r->error = error;
	r->length = (uint32_t)call->reply_length;
}

void command_refuse(struct call *call, int error, const char *why)
{
	memset(&call->reply, 0, sizeof(call->reply));
	call->reply_length = sizeof(call->reply);
	fill_reply_header(call, call_fail(call, error, "%s", why));
}

void call_close_descriptors(struct call *call)
{
	for (uint32_t i = 0; i < call->in.count; i++)
		dispose_descriptor(&call->engine->control->disposal, call->in.fd[i]);
	if (call->memory.sought && call->memory.fd >= 0)
		close(call->memory.fd);
	call->memory.sought = false;
	for (uint32_t i = 0; i < call->out.count; i++)
		if ((call->out_borrowed >> i & 1) == 0)
			close(call->out.fd[i]);
	call->in.count = 0;
	call->out.count = 0;
}

/* Checks the message's form before anything in it is used. */
static int check_header(struct call *call)
{
	const struct command_request *h = call->request;

	if (call->length < sizeof(*h) || h->magic != COMMAND_MAGIC)
		return call_fail(call, EPROTO, "not a uroce protocol message");
	if (h->version != COMMAND_VERSION)
		return call_fail(call, EPROTO,
				 "the engine has protocol version %u, the program %u: "
				 "install the same release",
				 COMMAND_VERSION, h->version);
	if (h->command >= COMMAND_COUNT)
		return call_fail(call, EOPNOTSUPP, "unknown command %u", h->command);
	return 0;
}

static int check_shape(struct call *call)
{
	const struct command_row *row = &commands[call->request->command];
	size_t wanted = lengths[call->request->command].request;

	if (call->request->length != call->length || call->length < wanted ||
	    (call->length > wanted && !row->variable))
		return call_fail(call, EPROTO, "a message of %zu octets instead of %zu",
				 call->length, wanted);
	if (call->in.count > row->descriptors)
		return call_fail(call, EPROTO,
				 "%u descriptors with the message, at most %u are allowed",
				 call->in.count, row->descriptors);
	if (row->needs == A_CLIENT && call->client == NULL)
		return call_fail(call, EPERM, "the program has not sent HELLO");
	if (row->needs == NO_CLIENT_YET && call->client != NULL)
		return call_fail(call, EPERM, "the program has already sent HELLO");
	return 0;
}

void command_execute(struct call *call)
{
	int error;

	memset(&call->reply, 0, sizeof(call->reply));
	call->out.count = 0;
	call->out_borrowed = 0;
	call->finish = NULL;
	call->in_slices = false;
	call->leaving = false;
	call->reply_length = sizeof(call->reply);
	error = check_header(call);
	if (error == 0)
		error = check_shape(call);
	if (error == 0 && call->in_lost)
		error = call_fail(call, ENOMEM, "the engine has no descriptors left");
	if (error == 0) {
		memset(call->reply_octets, 0, lengths[call->request->command].reply);
		error = commands[call->request->command].execute(call);
		if (error == 0)
			call->reply_length = lengths[call->request->command].reply;
	}
	if (call->finish == NULL)
		fill_reply_header(call, error);
}

void command_finish(struct call *call)
{
	int error = call->finish(call);

	if (error != 0)
		call->reply_length = sizeof(call->reply);
	fill_reply_header(call, error);
}

bool command_try(struct call *call)
{
	int (*again)(struct call * call) = call->finish;
	int error;

	call->finish = NULL;
	call->leaving = false;
	error = again(call);
	if (call->finish != NULL) /* once more, or for copies now */
		return false;
	if (error != 0)
		call->reply_length = sizeof(call->reply);
	fill_reply_header(call, error);
	return true;
}
