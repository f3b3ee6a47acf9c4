/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzz target without libFuzzer: each file of the folders that are named is one input. Builds with
 * -Db_coverage=true have this main (scripts/coverage.py).
 */
#include <dirent.h>
#include <err.h>

#include "fuzz/input.h"

#define LONGEST 65536

/* Some targets have none. */
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static void replay_file(const char *folder, const char *name)
{
	char path[4096];
	uint8_t *octets;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "rb");
	octets = malloc(LONGEST);
	if (f == NULL || octets == NULL)
		err(1, "%s", path);
	n = fread(octets, 1, LONGEST, f);
	fclose(f);
	LLVMFuzzerTestOneInput(octets, n);
	free(octets);
}

static unsigned int replay_folder(const char *folder)
{
	DIR *d = opendir(folder);
	unsigned int inputs = 0;
	struct dirent *e;

	if (d == NULL)
		err(1, "%s", folder);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		replay_file(folder, e->d_name);
		inputs++;
	}
	closedir(d);
	return inputs;
}

int main(int argc, char **argv)
{
	unsigned int inputs = 0;

	if (LLVMFuzzerInitialize != NULL)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		inputs += replay_folder(argv[i]);
	printf("%u inputs\n", inputs);
	return inputs > 0 ? 0 : 1;
}
