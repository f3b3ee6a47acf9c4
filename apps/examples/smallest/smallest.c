/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest program with an RDMA engine inside: it has no port, polls the engine in its only loop,
 * and writes from its own memory to its own memory through a queue pair.
 *
 *	smallest --no-huge -m 256 --no-pci
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <uroce.h>

#include "self.h"

#define MOST_ROUNDS 1000000

static int write_once(struct uroce_engine *engine, struct self *s)
{
	bool failed = false;
	int rounds = 0;

	strcpy(s->from, "hello, myself");
	if (!self_write(s))
		return EXIT_FAILURE;
	do {
		if (uroce_poll(engine, 0) < 0 || ++rounds == MOST_ROUNDS)
			return EXIT_FAILURE;
	} while (!self_written(s, &failed));
	if (failed)
		return EXIT_FAILURE;
	printf("after %d rounds: %s\n", rounds, s->to);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct uroce_options options = { .size = sizeof(options), .lcores = 1, .socket_gid = -1 };
	static struct self self;
	struct uroce_engine *engine;
	char text[256];
	int own = rte_eal_init(argc, argv), status = EXIT_FAILURE;

	if (own < 0)
		return EXIT_FAILURE;
	if (argc - own > 1) {
		fprintf(stderr,
			"smallest: '%s': must be an option of EAL, and there are no others\n",
			argv[own + 1]);
		return 2;
	}
	engine = uroce_create(&options, text, sizeof(text));
	if (engine == NULL) {
		fprintf(stderr, "%s\n", text);
		return EXIT_FAILURE;
	}
	uroce_describe(engine, text, sizeof(text));
	printf("%s\n", text);
	if (uroce_register(engine) == 0 && self_open(&self, "uroce0"))
		status = write_once(engine, &self);
	self_close(&self);
	uroce_destroy(engine);
	rte_eal_cleanup();
	return status;
}
