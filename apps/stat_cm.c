/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce stat --cm: prints listeners and connections. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "cm/mad.h"
#include "json.h"
#include "stat_cm.h"

static const char *space_name(uint16_t space)
{
	switch (space) {
	case CM_SPACE_TCP:
		return "tcp";
	case CM_SPACE_UDP:
		return "udp";
	case CM_SPACE_IPOIB:
		return "ipoib";
	case CM_SPACE_IB:
		return "ib";
	default:
		return "?";
	}
}

/* An address as text; it must be set. */
static const char *ip_text(const struct cm_address *a, char *text, socklen_t size)
{
	if (a->family == 4)
		return inet_ntop(AF_INET, a->ip.octet + 12, text, size);
	return inet_ntop(AF_INET6, a->ip.octet, text, size);
}

static const char *address_text(const struct cm_address *a, char *text, size_t size)
{
	char ip[INET6_ADDRSTRLEN];

	if (a->family == 0)
		return "-";
	snprintf(text, size, a->family == 4 ? "%s:%u" : "[%s]:%u", ip_text(a, ip, sizeof(ip)),
		 a->port);
	return text;
}

/* A program may have any name: only printable characters of it reach the terminal. */
static void make_printable(struct cm_listed *id)
{
	id->program[sizeof(id->program) - 1] = '\0';
	id->state[sizeof(id->state) - 1] = '\0';
	for (char *c = id->program; *c != '\0'; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

#define HEAD "%-17s %-5s %-25s %-25s %-8s %6s %6s %6s %7s  %s\n"

static void print_head(void)
{
	printf(HEAD, "state", "space", "own address", "peer", "qpn", "out", "in", "late", "pid",
	       "program");
}

static void print_line(const struct cm_listed *id)
{
	char own[64], peer[64], pid[16] = "-", qpn[16] = "-", count[3][16];

	if (id->pid != 0)
		snprintf(pid, sizeof(pid), "%" PRIu32, id->pid);
	if (id->qpn != 0)
		snprintf(qpn, sizeof(qpn), "0x%06" PRIx32, id->qpn);
	snprintf(count[0], sizeof(count[0]), "%" PRIu32, id->sent);
	snprintf(count[1], sizeof(count[1]), "%" PRIu32, id->received);
	snprintf(count[2], sizeof(count[2]), "%" PRIu32, id->timeouts);
	printf(HEAD, id->state, space_name(id->port_space),
	       address_text(&id->source, own, sizeof(own)),
	       address_text(&id->destination, peer, sizeof(peer)), qpn, count[0], count[1],
	       count[2], pid, id->program);
}

static void json_address(struct json *j, const char *key, const struct cm_address *a)
{
	char ip[INET6_ADDRSTRLEN];

	if (a->family == 0)
		return;
	json_open(j, key, '{');
	json_string(j, "address", ip_text(a, ip, sizeof(ip)));
	json_integer(j, "port", a->port);
	json_close(j, '}');
}

static void json_line(struct json *j, const struct cm_listed *id)
{
	json_open(j, NULL, '{');
	json_string(j, "state", id->state);
	json_string(j, "port_space", space_name(id->port_space));
	json_address(j, "source", &id->source);
	json_address(j, "destination", &id->destination);
	json_integer(j, "qpn", id->qpn);
	json_integer(j, "messages_sent", id->sent);
	json_integer(j, "messages_received", id->received);
	json_integer(j, "messages_late", id->timeouts);
	json_integer(j, "pid", id->pid);
	json_string(j, "program", id->program);
	json_close(j, '}');
}

int cm_walk(int fd, void (*row)(void *arg, struct cm_listed *id), void *arg, char *why,
	    size_t why_size)
{
	struct request_cm_list request = { .h = { .command = COMMAND_CM_LIST,
						  .length = sizeof(request) } };
	struct reply_cm_list list;
	int error;

	do {
		error = engine_call(fd, &request.h, &list.h, sizeof(list), why, why_size);
		if (error != 0)
			return error;
		for (uint32_t i = 0; i < MIN_OF(list.count, CM_LISTED_MAX); i++) {
			make_printable(&list.id[i]);
			row(arg, &list.id[i]);
		}
		if (list.next != 0 && list.next <= request.from)
			return EPROTO; /* the list would never end */
		request.from = list.next;
	} while (list.next != 0);
	return 0;
}

struct printing {
	struct json *j; /* NULL: lines for people */
	void (*since)(struct cm_listed *id);
};

static void print_id(void *arg, struct cm_listed *id)
{
	const struct printing *p = arg;

	if (p->since != NULL)
		p->since(id);
	if (p->j != NULL)
		json_line(p->j, id);
	else
		print_line(id);
}

int cm_print_since(int fd, void (*since)(struct cm_listed *id), char *why, size_t why_size)
{
	struct printing p = { .since = since };

	print_head();
	return cm_walk(fd, print_id, &p, why, why_size);
}

int stat_cm(int fd, bool as_json, char *why, size_t why_size)
{
	struct json j = { .out = stdout };
	struct printing p = { .j = &j };
	int error;

	if (!as_json)
		return cm_print_since(fd, NULL, why, why_size);
	json_open(&j, NULL, '[');
	error = cm_walk(fd, print_id, &p, why, why_size);
	if (error == 0)
		json_close(&j, ']');
	return error;
}
