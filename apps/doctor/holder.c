/* SPDX-License-Identifier: BSD-3-Clause */
#include "holder.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"

void holder_name(const struct machine *m, struct holder *h)
{
	tree_line(m, h->program, sizeof(h->program), "/proc/%d/comm", h->pid);
}

static bool has_open(const struct machine *m, int32_t pid, const char *file)
{
	DIR *fds = tree_folder(m, "/proc/%d/fd", pid);
	char path[PATH_MAX], target[PATH_MAX];
	const char *name;
	bool found = false;

	while (!found && (name = tree_next(fds)) != NULL) {
		ssize_t n;

		tree_path(m, path, sizeof(path), "/proc/%d/fd/%s", pid, name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		found = strcmp(target, file) == 0;
	}
	if (fds != NULL)
		closedir(fds);
	return found;
}

bool holder_of_file(const struct machine *m, const char *file, struct holder *h)
{
	DIR *processes = tree_folder(m, "/proc");
	const char *name;
	bool found = false;

	while (!found && (name = tree_next(processes)) != NULL)
		found = tree_numbered(name, "", &h->pid) && has_open(m, h->pid, file);
	if (processes != NULL)
		closedir(processes);
	if (found)
		holder_name(m, h);
	return found;
}

/* Taking the lock to test it would disturb an engine that takes it now. */
bool holder_of_lock(const struct machine *m, const char *path, struct holder *h)
{
	FILE *f = tree_file(m, "/proc/locks");
	char line[128], full[PATH_MAX];
	bool found = false;
	uint64_t inode;
	struct stat st;

	tree_path(m, full, sizeof(full), "%s", path);
	if (f == NULL || stat(full, &st) != 0) {
		if (f != NULL)
			fclose(f);
		return false;
	}
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = sscanf(line, "%*s FLOCK ADVISORY WRITE %" SCNd32 " %*x:%*x:%" SCNu64,
			       &h->pid, &inode) == 2 &&
			inode == st.st_ino && h->pid > 0;
	fclose(f);
	if (found)
		holder_name(m, h);
	return found;
}
