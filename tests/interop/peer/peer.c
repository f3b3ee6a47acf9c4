/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

#include <arpa/inet.h>
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t peer_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

const char *peer_text(struct peer *p, const char *key, const char *otherwise)
{
	size_t length = strlen(key);
	const char *w;

	for (w = p->words; *w != '\0'; w += strlen(w) + 1)
		if (strncmp(w, key, length) == 0 && w[length] == '=')
			return w + length + 1;
	if (otherwise == NULL)
		errx(2, "'%s' has no '%s'", p->words, key);
	return otherwise;
}

uint64_t peer_number(struct peer *p, const char *key)
{
	return strtoull(peer_text(p, key, NULL), NULL, 0);
}

uint64_t peer_number_or(struct peer *p, const char *key, uint64_t otherwise)
{
	const char *text = peer_text(p, key, "");

	return *text == '\0' ? otherwise : strtoull(text, NULL, 0);
}

struct peer_mr *peer_mr(struct peer *p)
{
	uint64_t n = peer_number(p, "mr");

	if (n >= p->n_mrs)
		errx(2, "no mr %ju", (uintmax_t)n);
	return &p->mrs[n];
}

struct peer_qp *peer_qp(struct peer *p)
{
	uint64_t n = peer_number(p, "qp");

	if (n >= p->n_qps)
		errx(2, "no qp %ju", (uintmax_t)n);
	return &p->qps[n];
}

void peer_gid(struct peer *p, union ibv_gid *gid)
{
	const char *text = peer_text(p, "gid", NULL);

	if (inet_pton(AF_INET6, text, gid->raw) != 1)
		errx(2, "'%s' is not a GID", text);
}

void peer_say(struct peer *p, const char *format, ...)
{
	size_t at = strlen(p->answer);
	va_list list;

	va_start(list, format);
	vsnprintf(p->answer + at, sizeof(p->answer) - at, format, list);
	va_end(list);
}

void peer_result(struct peer *p, const char *what, int error)
{
	if (error == 0)
		peer_say(p, "ok");
	else
		peer_say(p, "error %s: %s", what, strerror(error));
}

static void execute(struct peer *p, char *line, size_t length)
{
	static const struct peer_command *const tables[] = { peer_object_commands,
							     peer_work_commands };
	const struct peer_command *c;
	size_t i;

	for (i = 0; i < length; i++)
		if (line[i] == ' ' || line[i] == '\n')
			line[i] = '\0';
	p->words = line;
	p->answer[0] = '\0';
	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (c = tables[i]; c->name != NULL; c++)
			if (strcmp(c->name, line) == 0) {
				c->run(p);
				return;
			}
	errx(2, "unknown command '%s'", line);
}

static FILE *accept_one(uint16_t port)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1, connection;
	FILE *stream;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1) != 0)
		err(1, "port %u", port);
	connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (connection < 0)
		err(1, "accept");
	close(fd);
	stream = fdopen(connection, "r");
	if (stream == NULL)
		err(1, "fdopen");
	return stream;
}

int main(int argc, char **argv)
{
	static struct peer p;
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	FILE *stream;

	if (argc != 2)
		errx(2, "usage: peer TCP-PORT");
	stream = accept_one((uint16_t)atoi(argv[1]));
	/* the newline ends the last word, the end of the string is the empty word */
	while ((length = getline(&line, &room, stream)) > 0 && line[length - 1] == '\n') {
		execute(&p, line, (size_t)length);
		if (dprintf(fileno(stream), "%s\n", p.answer) < 0)
			err(1, "answer");
	}
	return 0;
}
