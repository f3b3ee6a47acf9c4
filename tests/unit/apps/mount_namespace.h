/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mount namespace of the test's own that plays the host for a program of `uroce run`: its mounts
 * are shared, and it has a tmpfs at `place`.
 */
#ifndef TESTS_APPS_MOUNT_NAMESPACE_H
#define TESTS_APPS_MOUNT_NAMESPACE_H

extern char place[64];

/* Skips the test with a reason if this user may not create one. */
void mount_namespace_enter(void);
void mount_namespace_leave(void);
/* Leaves the namespaces entered since then, to look at the host. */
void mount_namespace_return(void);

/* ---- files below `place`; absolute paths are used as they are ---- */

const char *at(const char *path);
void make_folder(const char *path);
void make_file(const char *path, const char *text);
void make_tmpfs(const char *path);
/* NULL: the file must not exist. */
void expect_text(const char *path, const char *text);

#endif
