/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mount namespace that a test has for itself, in which it is what the host is to a program of
 * `uroce run`: its mounts are shared, and it has a tmpfs at `place` for whatever it likes.
 */
#ifndef TESTS_APPS_MOUNT_NAMESPACE_H
#define TESTS_APPS_MOUNT_NAMESPACE_H

extern char place[64];

/* The test is skipped, with the reason, where this user may have none. */
void mount_namespace_enter(void);
void mount_namespace_leave(void);
/* Back out of what was begun since, to look at the host. */
void mount_namespace_return(void);

/* ---- files below `place`; a path with a '/' in front is taken as it is ---- */

const char *at(const char *path);
void make_folder(const char *path);
void make_file(const char *path, const char *text);
void make_tmpfs(const char *path);
/* NULL: there is no such file. */
void expect_text(const char *path, const char *text);

#endif
