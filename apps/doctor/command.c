/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: prints what a machine lacks for an engine, and what makes one slow. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/commands.h"
#include "doctor.h"
#include "json.h"
#include "locate.h"
#include "options.h"
#include "output.h"

static const char usage[] =
	"usage: uroce doctor [--port PORT] [--socket PATH] [--all] [--json]\n"
	"\n"
	"Checks this machine and the port that an engine will use. Prints what is missing and what makes\n"
	"an engine slow, one line each, with the command that fixes it. Changes nothing.\n"
	"\n"
	"  --port PORT    a Linux interface (for uroced --netdev), or the address of a PCI device\n"
	"                 such as 0000:03:00.0 (for uroced --port); default: none, this host only\n"
	"  --socket PATH  look for an engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  --all          print what is fine, too\n"
	"  --json         print the checks as JSON\n"
	"\n"
	"The exit status is 0 if nothing is missing, otherwise 1. docs/tuning.md explains the checks.\n";

#define PORT_ACTIVE 4 /* ibv_port_state */

struct doctor_options {
	const char *port;
	const char *socket;
	bool all, json;
};

static const char *const verdict_names[] = {
	[CHECK_NONE] = "none",
	[CHECK_OK] = "ok",
	[CHECK_SLOW] = "slow",
	[CHECK_MISSING] = "missing",
};

struct summary {
	uint32_t count[CHECK_MISSING + 1];
};

static void print_text(const char *name, const struct finding *f, bool all)
{
	if (f->verdict == CHECK_OK && !all)
		return;
	printf("%-8s %-11s %s", verdict_names[f->verdict], name, f->text);
	if (f->mend[0] != '\0')
		printf("; to fix it: %s", f->mend);
	putchar('\n');
}

static void print_json(struct json *j, const char *name, const struct finding *f)
{
	json_open(j, NULL, '{');
	json_string(j, "check", name);
	json_string(j, "result", verdict_names[f->verdict]);
	json_string(j, "text", f->text);
	json_string(j, "mend", f->mend);
	json_close(j, '}');
}

static void examine(const struct machine *m, const struct doctor_options *o, struct json *j,
		    struct summary *s)
{
	struct finding f;

	for (const struct check *c = checks; c->name != NULL; c++) {
		memset(&f, 0, sizeof(f));
		c->run(m, &f);
		s->count[f.verdict]++;
		if (f.verdict == CHECK_NONE)
			continue;
		if (o->json)
			print_json(j, c->name, &f);
		else
			print_text(c->name, &f, o->all);
	}
}

static void report(const struct machine *m, const struct doctor_options *o, struct summary *s)
{
	struct json j = { .out = stdout };

	if (!o->json) {
		examine(m, o, &j, s);
		printf("%u ok, %u slow, %u missing\n", s->count[CHECK_OK], s->count[CHECK_SLOW],
		       s->count[CHECK_MISSING]);
		return;
	}
	json_open(&j, NULL, '{');
	json_open(&j, "checks", '[');
	examine(m, o, &j, s);
	json_close(&j, ']');
	json_integer(&j, "slow", s->count[CHECK_SLOW]);
	json_integer(&j, "missing", s->count[CHECK_MISSING]);
	json_close(&j, '}');
}

/* The process that listens on the socket, according to the kernel. */
static int32_t pid_at(const char *path)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int fd = engine_connect(path);
	int32_t pid = 0;

	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
		pid = peer.pid;
	close(fd);
	return pid;
}

static void find_engine(struct machine *m, const char *chosen)
{
	struct engine_place where = { .path = "" };
	struct reply_device device;

	m->engine_error = engine_locate(chosen, &where, &device, m->engine, sizeof(m->engine));
	memcpy(m->socket, where.path, sizeof(m->socket));
	m->engine_active = m->engine_error == 0 && device.port_state == PORT_ACTIVE;
	if (m->engine_error == 0)
		engine_describe(&device, m->engine, sizeof(m->engine));
	if (m->engine_error == 0 || m->engine_error == ETIMEDOUT)
		m->engine_pid = pid_at(where.path);
}

static bool parse(int argc, char **argv, struct doctor_options *o, int *status)
{
	const struct option_row rows[] = { { "port", .text = &o->port },
					   { "socket", .text = &o->socket },
					   { "all", .flag = &o->all },
					   { "json", .flag = &o->json },
					   { NULL } };

	return options_read("doctor", usage, rows, argc, argv, NULL, status);
}

int command_doctor(int argc, char **argv)
{
	struct machine m = { .root = "", .node = -1 };
	struct doctor_options o = { 0 };
	struct summary s = { 0 };
	char text[128];
	int status;

	if (!parse(argc, argv, &o, &status))
		return status;
	if (o.port != NULL && !machine_choose_port(&m, o.port)) {
		snprintf(
			text, sizeof(text),
			"--port %.40s: must be a network interface or a PCI device of this machine",
			o.port);
		return options_refuse("doctor", text);
	}
	machine_read_process(&m);
	find_engine(&m, o.socket);
	report(&m, &o, &s);
	status = output_status("uroce doctor");
	return s.count[CHECK_MISSING] == 0 ? status : EXIT_FAILED;
}
