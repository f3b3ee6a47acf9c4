/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/locate.h"
#include "client/log.h"

static void add(struct locations *l, const char *folder, const char *file)
{
	int n = snprintf(l->path[l->count], LOCATE_PATH, "%s%s", folder, file);

	if (n > 0 && (uint32_t)n < LOCATE_PATH)
		l->count++;
	else
		client_warn("socket path too long (limit %u octets): %s%s", LOCATE_PATH - 1, folder,
			    file);
}

/* Anybody can make a folder in /tmp, so it must be ours and closed to other users. */
static bool folder_is_ours(const char *folder)
{
	struct stat st;

	return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0;
}

static void add_own(struct locations *l)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char folder[64];

	if (runtime != NULL && runtime[0] == '/') {
		add(l, runtime, "/uroce/uroced.sock");
		return;
	}
	snprintf(folder, sizeof(folder), "/tmp/uroce-%u", (unsigned)geteuid());
	if (folder_is_ours(folder))
		add(l, folder, "/uroced.sock");
}

bool locate_has_more_rights(void)
{
	return getauxval(AT_SECURE) != 0;
}

void locate_engines(struct locations *l)
{
	bool privileged = locate_has_more_rights();
	const char *named = privileged ? NULL : getenv("UROCE_SOCKET");

	l->count = 0;
	if (named != NULL && named[0] != '\0') {
		add(l, named, "");
		return;
	}
	add(l, "/run/uroce/uroced.sock", "");
	if (!privileged)
		add_own(l);
}
