/* SPDX-License-Identifier: BSD-3-Clause */
#include "porters.h"
#include "control_rig.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void porters_adopt(void)
{
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

static pid_t find_parent(void)
{
	const struct dirent *entry;
	DIR *d = opendir("/proc");
	pid_t found = 0;

	while (found == 0 && (entry = readdir(d)) != NULL) {
		char file[280], name[32] = "";
		int pid = 0, parent = 0;
		FILE *f;

		snprintf(file, sizeof(file), "/proc/%s/stat", entry->d_name);
		f = fopen(file, "re");
		if (f == NULL)
			continue;
		if (fscanf(f, "%d (%31[^)]) %*c %d", &pid, name, &parent) == 3 &&
		    parent == getpid() && strcmp(name, "uroce-porters") == 0)
			found = pid;
		fclose(f);
	}
	closedir(d);
	return found;
}

pid_t porters_parent(void)
{
	pid_t found = find_parent();

	for (uint32_t ms = 0; found == 0 && ms < ENOUGH_MS; ms++) {
		usleep(1000);
		found = find_parent();
	}
	cr_assert_neq(found, 0, "the porters' parent has not begun within %u s", ENOUGH_MS / 1000);
	return found;
}
