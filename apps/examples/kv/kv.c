/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation on the store: kv HOST get KEY | put KEY VALUE | delete KEY. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

static int get(struct kv *k, const char *key)
{
	char value[KV_VALUE];
	size_t length;
	int error = kv_get(k, key, value, &length);

	if (error == 0)
		printf("%.*s\n", (int)length, value);
	return error;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	int error = EINVAL;
	struct kv *k;

	if (!(argc == 4 && (strcmp(what, "get") == 0 || strcmp(what, "delete") == 0)) &&
	    !(argc == 5 && strcmp(what, "put") == 0)) {
		fprintf(stderr,
			"kv: '%s' with %d words behind it: must be HOST get KEY, HOST put KEY VALUE or "
			"HOST delete KEY\n",
			what, argc > 3 ? argc - 3 : 0);
		return 2;
	}
	k = kv_open(argv[1], 1);
	if (k == NULL) {
		fprintf(stderr, "kv: cannot connect to %s: %s\n", argv[1], strerror(errno));
		return EXIT_FAILURE;
	}
	if (argc == 5)
		error = kv_put(k, argv[3], argv[4], strlen(argv[4]));
	else
		error = strcmp(what, "get") == 0 ? get(k, argv[3]) : kv_delete(k, argv[3]);
	kv_close(k);
	if (error != 0)
		fprintf(stderr, "kv: %s: %s\n", argv[3], strerror(error));
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
