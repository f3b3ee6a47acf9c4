/* SPDX-License-Identifier: BSD-3-Clause */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/files/device_tree.h"

static const char *const names[] = { [FILES_AUTO] = "auto",
				     [FILES_MOUNTS] = "mounts",
				     [FILES_PRELOAD] = "preload",
				     [FILES_NONE] = "none" };

const char *files_way_name(enum files_way way)
{
	return names[way];
}

int files_way_of(const char *name, enum files_way *way)
{
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0) {
			*way = (enum files_way)i;
			return 0;
		}
	return -1;
}

/*
 * Finds the engine's files and checks that they are this engine's: in another mount namespace the
 * same path may lead to another engine.
 */
static int find_files(const struct engine_place *where, const struct reply_device *device,
		      char path[PATH_MAX], char *why, size_t why_size)
{
	char near[PATH_MAX], file[PATH_MAX + 8], text[32] = "", wanted[32];
	int fd;

	snprintf(near, sizeof(near), "%s%s", where->path, DEVICE_TREE_SUFFIX);
	if (realpath(near, path) == NULL) {
		snprintf(why, why_size, "%s: %s", near, strerror(errno));
		return -1;
	}
	snprintf(file, sizeof(file), "%s/engine", path);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	if (fd >= 0)
		close(fd);
	snprintf(wanted, sizeof(wanted), "%016" PRIx64 "\n", device->engine_id);
	if (strcmp(text, wanted) == 0)
		return 0;
	snprintf(why, why_size, "%s belongs to another engine", path);
	return -1;
}

/*
 * Appended to what LD_PRELOAD contains, because a sanitizer's library must stay the first. By name
 * alone, because a path could contain a space or a colon.
 */
static int set_preload(const char *files)
{
	const char *rest = getenv("LD_PRELOAD");
	char *joined;
	int done;

	if (setenv("UROCE_FILES", files, 1) != 0)
		return errno;
	if (rest != NULL && strstr(rest, FILES_LIBRARY) != NULL)
		return 0;
	if (rest == NULL || rest[0] == '\0')
		return setenv("LD_PRELOAD", FILES_LIBRARY, 1) == 0 ? 0 : errno;
	if (asprintf(&joined, "%s:%s", rest, FILES_LIBRARY) < 0)
		return ENOMEM;
	done = setenv("LD_PRELOAD", joined, 1);
	free(joined);
	return done == 0 ? 0 : errno;
}

/* Shows both classes, then the device nodes. 0 or an errno. */
static int put_files(const char *files, bool user)
{
	static const char *const class[] = { "infiniband", "infiniband_verbs" };
	char source[PATH_MAX + 64];
	int error = 0;

	for (unsigned int i = 0; error == 0 && i < sizeof(class) / sizeof(class[0]); i++) {
		snprintf(source, sizeof(source), "%s/class/%s", files, class[i]);
		error = mounts_put(source, "/sys/class", class[i], false);
	}
	if (error != 0)
		return error;
	/* An overlay in a user namespace cannot have device nodes. */
	if (user && access("/dev/infiniband", F_OK) != 0)
		return EPERM;
	snprintf(source, sizeof(source), "%s/dev/infiniband", files);
	return mounts_put(source, "/dev", "infiniband", true);
}

/* The preload library shows what could not be mounted. */
static enum files_way show_by_mounts(const char *files, bool user, char *why, size_t why_size)
{
	int error = mounts_begin(user);

	if (error != 0) {
		snprintf(why, why_size, "no mount namespace: %s", strerror(error));
		return FILES_NONE;
	}
	unsetenv("UROCE_FILES");
	if (put_files(files, user) != 0 && set_preload(files) != 0) {
		snprintf(why, why_size, "no memory");
		return FILES_NONE;
	}
	return FILES_MOUNTS;
}

static enum files_way show_by_preload(const char *files, char *why, size_t why_size)
{
	int error = set_preload(files);

	if (error == 0)
		return FILES_PRELOAD;
	snprintf(why, why_size, "%s", strerror(error));
	return FILES_NONE;
}

enum files_way files_show(enum files_way wanted, const struct engine_place *where,
			  const struct reply_device *device, char *why, size_t why_size)
{
	bool root = geteuid() == 0;
	char files[PATH_MAX];

	why[0] = '\0';
	if (wanted == FILES_NONE || find_files(where, device, files, why, why_size) != 0) {
		unsetenv("UROCE_FILES"); /* set by an outer `uroce run` */
		return FILES_NONE;
	}
	if (wanted == FILES_MOUNTS)
		return show_by_mounts(files, !root, why, why_size);
	if (wanted == FILES_AUTO && root &&
	    show_by_mounts(files, false, why, why_size) == FILES_MOUNTS)
		return FILES_MOUNTS;
	return show_by_preload(files, why, why_size);
}
