/* SPDX-License-Identifier: BSD-3-Clause */
/* A list is described by its columns; text and JSON are both made of them. */
#include "lists.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/work.h"
#include "json.h"

struct column {
	const char *title;
	const char *key; /* in JSON */
	int width; /* negative: to the left */
	bool number; /* what `text` writes is one: JSON has no quotes around it */
	void (*text)(const void *row, char *text, size_t size);
};

/* A program may have any name: only printable characters of it reach the terminal. */
static void printable(const char name[32], char *text, size_t size)
{
	snprintf(text, size, "%.31s", name);
	for (char *c = text; *c != '\0'; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

/* The text of a column: one value of the row. */
#define VALUE(name, type, format, value)                            \
	static void name(const void *row_, char *text, size_t size) \
	{                                                           \
		const type *row = row_;                             \
                                                                    \
		snprintf(text, size, format, value);                \
	}

#define PROGRAM(name, type)                                           \
	static void name(const void *row_, char *text, size_t size)   \
	{                                                             \
		printable(((const type *)row_)->program, text, size); \
	}

/* ---- queue pairs ---- */

const char *qp_type_name(uint8_t type)
{
	switch (type) {
	case QP_TYPE_RC:
		return "RC";
	case QP_TYPE_UC:
		return "UC";
	case QP_TYPE_UD:
		return "UD";
	case QP_TYPE_RAW_PACKET:
		return "RAW_PACKET";
	case QP_TYPE_XRC_SEND:
		return "XRC_SEND";
	case QP_TYPE_XRC_RECV:
		return "XRC_RECV";
	default:
		return "?";
	}
}

const char *qp_state_name(uint8_t state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

VALUE(qp_number, struct listed_qp, "0x%06" PRIx32, row->qpn)
VALUE(qp_type_text, struct listed_qp, "%s", qp_type_name(row->type))
VALUE(qp_state_text, struct listed_qp, "%s", qp_state_name(row->state))
VALUE(qp_dest, struct listed_qp, "0x%06" PRIx32, row->dest_qpn)
VALUE(qp_lcore, struct listed_qp, "%u", row->lcore)
VALUE(qp_send_psn, struct listed_qp, "%" PRIu32, row->send_psn)
VALUE(qp_receive_psn, struct listed_qp, "%" PRIu32, row->receive_psn)
VALUE(qp_packets_out, struct listed_qp, "%" PRIu64, row->sent)
VALUE(qp_packets_in, struct listed_qp, "%" PRIu64, row->received)
VALUE(qp_packets_again, struct listed_qp, "%" PRIu64, row->again)
VALUE(qp_pid, struct listed_qp, "%" PRIu32, row->pid)
VALUE(qp_uid, struct listed_qp, "%" PRIu32, row->uid)
PROGRAM(qp_program, struct listed_qp)

static void qp_peer(const void *row, char *text, size_t size)
{
	if (address_of_gid(&((const struct listed_qp *)row)->peer, text, size)[0] == '\0')
		snprintf(text, size, "-");
}

static void qp_way(const void *row, char *text, size_t size)
{
	static const char *const names[] = { "-", "port", "here", "unreachable", "by-request" };
	uint8_t way = ((const struct listed_qp *)row)->way;

	snprintf(text, size, "%s", way < ARRAY_SIZE(names) ? names[way] : "?");
}

static const struct column qp_columns[] = {
	{ "qpn", "qpn", -8, true, qp_number },
	{ "type", "type", -10, false, qp_type_text },
	{ "state", "state", -5, false, qp_state_text },
	{ "peer", "peer", -20, false, qp_peer },
	{ "peer's", "dest_qpn", -8, true, qp_dest },
	{ "way", "way", -10, false, qp_way },
	{ "sends", "send_psn", 8, true, qp_send_psn },
	{ "expects", "receive_psn", 8, true, qp_receive_psn },
	{ "out", "tx_packets", 10, true, qp_packets_out },
	{ "in", "rx_packets", 10, true, qp_packets_in },
	{ "again", "retransmitted", 7, true, qp_packets_again },
	{ "lcore", "lcore", 5, true, qp_lcore },
	{ "uid", "uid", 6, true, qp_uid },
	{ "pid", "pid", 7, true, qp_pid },
	{ "program", "program", 0, false, qp_program },
	{ NULL },
};

/* ---- memory ---- */

VALUE(mr_key, struct listed_mr, "0x%08" PRIx32, row->key)
VALUE(mr_address, struct listed_mr, "0x%" PRIx64, row->address)
VALUE(mr_length, struct listed_mr, "%" PRIu64, row->length)
VALUE(mr_pid, struct listed_mr, "%" PRIu32, row->pid)
VALUE(mr_uid, struct listed_mr, "%" PRIu32, row->uid)
PROGRAM(mr_program, struct listed_mr)

/* The words of those bits that are set, with commas between them. */
static void bit_names(uint32_t bits, const char *const *name, uint32_t names, char *text,
		      size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < names && n < size; i++)
		if (name[i] != NULL && (bits >> i & 1) != 0)
			n += (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? "," : "",
					      name[i]);
	if (n == 0)
		snprintf(text, size, "-");
}

static void mr_access(const void *row, char *text, size_t size)
{
	static const char *const names[] = { "lw", "rw", "rr", "atomic", "bind" };

	bit_names(((const struct listed_mr *)row)->access, names, ARRAY_SIZE(names), text, size);
}

static void mr_reach(const void *row, char *text, size_t size)
{
	static const char *const names[] = { "mapped", "peer", "on-demand", "device" };

	bit_names(((const struct listed_mr *)row)->reach, names, ARRAY_SIZE(names), text, size);
}

static const struct column mr_columns[] = {
	{ "key", "key", -10, true, mr_key },
	{ "address", "address", -16, true, mr_address },
	{ "octets", "length", 14, true, mr_length },
	{ "access", "access", -20, false, mr_access },
	{ "reached", "reach", -14, false, mr_reach },
	{ "uid", "uid", 6, true, mr_uid },
	{ "pid", "pid", 7, true, mr_pid },
	{ "program", "program", 0, false, mr_program },
	{ NULL },
};

/* ---- programs ---- */

VALUE(program_pid, struct listed_program, "%" PRIu32, row->pid)
VALUE(program_uid, struct listed_program, "%" PRIu32, row->uid)
VALUE(program_contexts, struct listed_program, "%" PRIu32, row->contexts)
VALUE(program_pds, struct listed_program, "%" PRIu32, row->pds)
VALUE(program_mrs, struct listed_program, "%" PRIu32, row->mrs)
VALUE(program_cqs, struct listed_program, "%" PRIu32, row->cqs)
VALUE(program_qps, struct listed_program, "%" PRIu32, row->qps)
VALUE(program_srqs, struct listed_program, "%" PRIu32, row->srqs)
VALUE(program_ahs, struct listed_program, "%" PRIu32, row->ahs)
VALUE(program_ids, struct listed_program, "%" PRIu32, row->ids)
VALUE(program_memory, struct listed_program, "%" PRIu64, row->memory)
PROGRAM(program_name, struct listed_program)

static const struct column program_columns[] = {
	{ "pid", "pid", 7, true, program_pid },
	{ "uid", "uid", 6, true, program_uid },
	{ "devices", "contexts", 7, true, program_contexts },
	{ "pds", "pds", 6, true, program_pds },
	{ "regions", "mrs", 7, true, program_mrs },
	{ "cqs", "cqs", 6, true, program_cqs },
	{ "qps", "qps", 6, true, program_qps },
	{ "srqs", "srqs", 6, true, program_srqs },
	{ "ahs", "ahs", 6, true, program_ahs },
	{ "cm ids", "ids", 6, true, program_ids },
	{ "qp memory", "memory", 12, true, program_memory },
	{ "program", "program", 0, false, program_name },
	{ NULL },
};

/* ---- neighbours ---- */

VALUE(neighbour_users, struct listed_neighbour, "%" PRIu32, row->users)
VALUE(neighbour_looks, struct listed_neighbour, "%" PRIu64, row->looks)
VALUE(neighbour_changes, struct listed_neighbour, "%" PRIu64, row->changes)

static void neighbour_address(const void *row, char *text, size_t size)
{
	address_of_gid(&((const struct listed_neighbour *)row)->gid, text, size);
}

static void neighbour_from(const void *row, char *text, size_t size)
{
	if (address_of_gid(&((const struct listed_neighbour *)row)->from, text, size)[0] == '\0')
		snprintf(text, size, "-");
}

static void neighbour_mac(const void *row, char *text, size_t size)
{
	const struct listed_neighbour *n = row;

	if (n->way != LISTED_PORT)
		snprintf(text, size, "-");
	else
		snprintf(text, size, "%02x:%02x:%02x:%02x:%02x:%02x", n->mac[0], n->mac[1],
			 n->mac[2], n->mac[3], n->mac[4], n->mac[5]);
}

static void neighbour_state(const void *row, char *text, size_t size)
{
	uint8_t way = ((const struct listed_neighbour *)row)->way;

	snprintf(text, size, "%s",
		 way == LISTED_PORT	 ? "known"
		 : way == LISTED_NOWHERE ? "asked"
					 : "unreachable");
}

static const struct column neighbour_columns[] = {
	{ "address", "address", -40, false, neighbour_address },
	{ "from", "from", -25, false, neighbour_from },
	{ "next hop", "mac", -17, false, neighbour_mac },
	{ "state", "state", -11, false, neighbour_state },
	{ "users", "users", 6, true, neighbour_users },
	{ "looks", "looks", 8, true, neighbour_looks },
	{ "changes", "changes", 8, true, neighbour_changes },
	{ NULL },
};

/* ---- paths ---- */

/* The rate that the window allows, in bits/s. */
static uint64_t rate_of(const struct listed_path *path)
{
	return path->round_trip_ns > 0
		       ? (uint64_t)((double)path->window * 8e9 / (double)path->round_trip_ns)
		       : 0;
}

VALUE(path_lcore, struct listed_path, "%" PRIu32, row->lcore)
VALUE(path_class, struct listed_path, "%" PRIu32, row->traffic_class)
VALUE(path_qps, struct listed_path, "%" PRIu32, row->qps)
VALUE(path_trip, struct listed_path, "%" PRIu64, row->round_trip_ns)
VALUE(path_variation, struct listed_path, "%" PRIu64, row->variation_ns)
VALUE(path_least, struct listed_path, "%" PRIu64, row->least_ns)
VALUE(path_target, struct listed_path, "%" PRIu64, row->target_ns)
VALUE(path_window, struct listed_path, "%" PRIu64, row->window)
VALUE(path_flying, struct listed_path, "%" PRIu64, row->flying)
VALUE(path_rate, struct listed_path, "%" PRIu64, rate_of(row))
VALUE(path_parked, struct listed_path, "%" PRIu32, row->parked)
VALUE(path_sent, struct listed_path, "%" PRIu64, row->sent)
VALUE(path_acknowledged, struct listed_path, "%" PRIu64, row->acknowledged)
VALUE(path_cuts, struct listed_path, "%" PRIu64, row->cuts)
VALUE(path_waits, struct listed_path, "%" PRIu64, row->waits)
VALUE(path_samples, struct listed_path, "%" PRIu64, row->samples)
VALUE(path_again, struct listed_path, "%" PRIu64, row->again)
VALUE(path_overtaken, struct listed_path, "%" PRIu64, row->overtaken)
VALUE(path_reported, struct listed_path, "%" PRIu64, row->reported)
VALUE(path_probes, struct listed_path, "%" PRIu64, row->probes)
VALUE(path_timeouts, struct listed_path, "%" PRIu64, row->timeouts)
VALUE(path_cnps_received, struct listed_path, "%" PRIu64, row->cnps_received)
VALUE(path_cnps_sent, struct listed_path, "%" PRIu64, row->cnps_sent)

static void path_peer(const void *row, char *text, size_t size)
{
	address_of_gid(&((const struct listed_path *)row)->peer, text, size);
}

static const struct column path_columns[] = {
	{ "peer", "peer", -20, false, path_peer },
	{ "class", "traffic_class", 5, true, path_class },
	{ "lcore", "lcore", 5, true, path_lcore },
	{ "qps", "qps", 5, true, path_qps },
	{ "trip ns", "round_trip_ns", 10, true, path_trip },
	{ "varies", "variation_ns", 10, true, path_variation },
	{ "least", "least_ns", 10, true, path_least },
	{ "target", "target_ns", 10, true, path_target },
	{ "window", "window", 8, true, path_window },
	{ "flying", "flying", 8, true, path_flying },
	{ "bit/s", "rate", 12, true, path_rate },
	{ "parked", "parked", 6, true, path_parked },
	{ "waits", "waits", 8, true, path_waits },
	{ "cuts", "cuts", 8, true, path_cuts },
	{ "samples", "samples", 9, true, path_samples },
	{ "sent", "sent", 10, true, path_sent },
	{ "octets", "acknowledged", 14, true, path_acknowledged },
	{ "again", "again", 8, true, path_again },
	{ "overtaken", "overtaken", 9, true, path_overtaken },
	{ "reported", "reported", 8, true, path_reported },
	{ "probes", "probes", 7, true, path_probes },
	{ "timeouts", "timeouts", 8, true, path_timeouts },
	{ "CNPs in", "cnps_received", 7, true, path_cnps_received },
	{ "out", "cnps_sent", 7, true, path_cnps_sent },
	{ NULL },
};

/* ---- asking ---- */

/* What all replies have in common, and where each has its entries. */
struct reply_any_list {
	struct command_reply h;
	uint64_t next;
	uint32_t count;
	uint32_t reserved;
};

static const struct {
	enum command command;
	size_t reply, first, entry; /* octets: of the reply, before the entries, of an entry */
	uint32_t most;
	const struct column *columns;
} lists[] = {
	[LIST_QPS] = { COMMAND_QP_LIST, sizeof(struct reply_qp_list),
		       offsetof(struct reply_qp_list, qp), sizeof(struct listed_qp), LISTED_QPS,
		       qp_columns },
	[LIST_MEMORY] = { COMMAND_MR_LIST, sizeof(struct reply_mr_list),
			  offsetof(struct reply_mr_list, mr), sizeof(struct listed_mr), LISTED_MRS,
			  mr_columns },
	[LIST_PROGRAMS] = { COMMAND_PROGRAM_LIST, sizeof(struct reply_program_list),
			    offsetof(struct reply_program_list, program),
			    sizeof(struct listed_program), LISTED_PROGRAMS, program_columns },
	[LIST_NEIGHBOURS] = { COMMAND_NEIGHBOUR_LIST, sizeof(struct reply_neighbour_list),
			      offsetof(struct reply_neighbour_list, neighbour),
			      sizeof(struct listed_neighbour), LISTED_NEIGHBOURS,
			      neighbour_columns },
	[LIST_PATHS] = { COMMAND_PATH_LIST, sizeof(struct reply_path_list),
			 offsetof(struct reply_path_list, path), sizeof(struct listed_path),
			 LISTED_PATHS, path_columns },
};

int list_walk(int fd, enum list_of what, void (*row)(void *arg, const void *entry), void *arg,
	      char *why, size_t why_size)
{
	struct request_list request = { .h = { .command = (uint16_t)lists[what].command,
					       .length = sizeof(request) } };
	union {
		struct reply_any_list list;
		uint8_t octets[LIMIT_COMMAND_BYTES];
	} reply;
	int error;

	do {
		error = engine_call(fd, &request.h, &reply.list.h, lists[what].reply, why,
				    why_size);
		if (error != 0)
			return error;
		for (uint32_t i = 0; i < MIN_OF(reply.list.count, lists[what].most); i++)
			row(arg, reply.octets + lists[what].first + i * lists[what].entry);
		if (reply.list.next != 0 && reply.list.next <= request.from)
			return EPROTO; /* the list would never end */
		request.from = reply.list.next;
	} while (reply.list.next != 0);
	return 0;
}

void list_fields(enum list_of what, const void *entry,
		 void (*field)(void *arg, const char *key, const char *text, bool number),
		 void *arg)
{
	char text[64];

	for (const struct column *c = lists[what].columns; c->title != NULL; c++) {
		c->text(entry, text, sizeof(text));
		field(arg, c->key, text, c->number);
	}
}

/* ---- printing ---- */

struct printing {
	FILE *out;
	enum list_of what;
	struct json j;
	void (*since)(void *entry);
};

static void json_field(void *arg, const char *key, const char *text, bool number)
{
	if (number)
		json_integer(arg, key, strtoull(text, NULL, 0));
	else
		json_string(arg, key, text);
}

static void json_row(void *arg, const void *entry)
{
	struct printing *p = arg;

	json_open(&p->j, NULL, '{');
	list_fields(p->what, entry, json_field, &p->j);
	json_close(&p->j, '}');
}

static void text_row(void *arg, const void *entry)
{
	const struct printing *p = arg;
	uint64_t own[32]; /* the reply's entry stays as it is */
	char text[64];

	static_assert(sizeof(own) >= sizeof(struct listed_path) &&
			      sizeof(own) >= sizeof(struct listed_qp),
		      "room for each");
	memcpy(own, entry, lists[p->what].entry);
	if (p->since != NULL)
		p->since(own);
	for (const struct column *c = lists[p->what].columns; c->title != NULL; c++) {
		c->text(own, text, sizeof(text));
		fprintf(p->out, "%*s%s", c->width, text, c[1].title != NULL ? " " : "\n");
	}
}

static void print_head(FILE *out, const struct column *c)
{
	for (; c->title != NULL; c++)
		fprintf(out, "%*s%s", c->width, c->title, c[1].title != NULL ? " " : "\n");
}

int list_print_since(int fd, enum list_of what, void (*since)(void *entry), char *why,
		     size_t why_size)
{
	struct printing p = { .out = stdout, .what = what, .since = since };

	print_head(p.out, lists[what].columns);
	return list_walk(fd, what, text_row, &p, why, why_size);
}

int list_print(FILE *out, int fd, enum list_of what, bool as_json, char *why, size_t why_size)
{
	struct printing p = { .out = out, .what = what, .j = { .out = out } };
	int error;

	if (!as_json) {
		print_head(out, lists[what].columns);
		return list_walk(fd, what, text_row, &p, why, why_size);
	}
	json_open(&p.j, NULL, '[');
	error = list_walk(fd, what, json_row, &p, why, why_size);
	if (error == 0)
		json_close(&p.j, ']');
	return error;
}
