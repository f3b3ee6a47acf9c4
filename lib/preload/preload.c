/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs that could not be given a mount namespace. Wraps the libc functions that take a
 * path, and redirects paths of the device's files to the folder that $UROCE_FILES names. Calls
 * inside libc do not pass through here, so fopen, scandir and the like are wrapped, too. Three
 * cases still see the host's files: a relative path from /sys/class, a listing of /sys/class or
 * /dev, and programs that call the kernel without libc.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "preload/rewrite.h"

#define EXPORT __attribute__((visibility("default")))

/*
 * Read only once, because a program may clear its environment. Atomic, because constructors and
 * threads of the program may call this first; a second read stores the same value.
 */
static const char *root(void)
{
	static char value[REWRITE_ROOM];
	static int known;
	const char *set;

	if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
		set = secure_getenv("UROCE_FILES");
		if (set != NULL && set[0] == '/')
			snprintf(value, sizeof(value), "%s", set);
		__atomic_store_n(&known, 1, __ATOMIC_RELEASE);
	}
	return value[0] != '\0' ? value : NULL;
}

static __attribute__((constructor)) void begin(void)
{
	root();
}

/*
 * The function of libc. It is looked up when this library is loaded, so that a call in a signal
 * handler or in the child of a fork does nothing that is not safe there. Constructors of other
 * libraries may call it earlier. So the pointer is atomic: threads that race store the same value.
 */
#define REAL(name)                                                                         \
	static __typeof__(&name) real_##name;                                              \
                                                                                           \
	static __attribute__((constructor)) void find_##name(void)                         \
	{                                                                                  \
		__atomic_store_n(&real_##name, dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED); \
	}                                                                                  \
                                                                                           \
	static __typeof__(&name) get_##name(void)                                          \
	{                                                                                  \
		if (__atomic_load_n(&real_##name, __ATOMIC_RELAXED) == NULL)               \
			find_##name();                                                     \
		return real_##name;                                                        \
	}

/*
 * Defines a function with these parameters, one of which is `path`, followed by the arguments for
 * libc's function.
 */
#define WRAP(type, failed, name, parameters, ...)         \
	EXPORT type name parameters;                      \
	REAL(name)                                        \
	EXPORT type name parameters                       \
	{                                                 \
		char room[REWRITE_ROOM];                  \
		int error = rewrite(root(), &path, room); \
                                                          \
		if (error == 0 && get_##name() == NULL)   \
			error = ENOSYS;                   \
		if (error == 0)                           \
			return get_##name()(__VA_ARGS__); \
		errno = error;                            \
		return failed;                            \
	}

/* The caller passes `mode` only with these flags. */
#define WRAP_OPEN(name, parameters, ...)                                   \
	REAL(name)                                                         \
	EXPORT int name parameters                                         \
	{                                                                  \
		char room[REWRITE_ROOM];                                   \
		int error = rewrite(root(), &path, room);                  \
		mode_t mode = 0;                                           \
		va_list list;                                              \
                                                                           \
		va_start(list, flags);                                     \
		if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) \
			mode = va_arg(list, mode_t);                       \
		va_end(list);                                              \
		if (error == 0)                                            \
			return get_##name()(__VA_ARGS__, mode);            \
		errno = error;                                             \
		return -1;                                                 \
	}

WRAP_OPEN(open, (const char *path, int flags, ...), path, flags)
WRAP_OPEN(open64, (const char *path, int flags, ...), path, flags)
WRAP_OPEN(openat, (int fd, const char *path, int flags, ...), fd, path, flags)
WRAP_OPEN(openat64, (int fd, const char *path, int flags, ...), fd, path, flags)
/* Programs built with _FORTIFY_SOURCE call these. */
WRAP(int, -1, __open_2, (const char *path, int flags), path, flags)
WRAP(int, -1, __open64_2, (const char *path, int flags), path, flags)
WRAP(int, -1, __openat_2, (int fd, const char *path, int flags), fd, path, flags)
WRAP(int, -1, __openat64_2, (int fd, const char *path, int flags), fd, path, flags)

WRAP(FILE *, NULL, fopen, (const char *path, const char *mode), path, mode)
WRAP(FILE *, NULL, fopen64, (const char *path, const char *mode), path, mode)
WRAP(int, -1, chdir, (const char *path), path)

/* Folders */
WRAP(DIR *, NULL, opendir, (const char *path), path)
WRAP(int, -1, scandir,
     (const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     path, list, filter, compare)
WRAP(int, -1, scandir64,
     (const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
      int (*compare)(const struct dirent64 **, const struct dirent64 **)),
     path, list, filter, compare)
WRAP(int, -1, scandirat,
     (int fd, const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     fd, path, list, filter, compare)
WRAP(int, -1, scandirat64,
     (int fd, const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
      int (*compare)(const struct dirent64 **, const struct dirent64 **)),
     fd, path, list, filter, compare)
/* The results of these show programs where the files are. */
WRAP(int, GLOB_ABORTED, glob,
     (const char *path, int flags, int (*failure)(const char *, int), glob_t *found), path, flags,
     failure, found)
WRAP(int, GLOB_ABORTED, glob64,
     (const char *path, int flags, int (*failure)(const char *, int), glob64_t *found), path, flags,
     failure, found)

WRAP(int, -1, ftw, (const char *path, __ftw_func_t visit, int fds), path, visit, fds)
WRAP(int, -1, ftw64, (const char *path, __ftw64_func_t visit, int fds), path, visit, fds)
WRAP(int, -1, nftw, (const char *path, __nftw_func_t visit, int fds, int flags), path, visit, fds,
     flags)
WRAP(int, -1, nftw64, (const char *path, __nftw64_func_t visit, int fds, int flags), path, visit,
     fds, flags)

/* The paths for fts_open, which copies them. The caller frees the result. NULL with errno. */
static char **rewrite_all(char *const *paths)
{
	size_t n = 0, length;
	const char *path;
	char **to, *room;
	int error = 0;

	while (paths[n] != NULL)
		n++;
	length = (n + 1) * sizeof(to[0]);
	to = malloc(length + n * REWRITE_ROOM);
	if (to == NULL)
		return NULL;
	room = (char *)to + length;
	for (size_t i = 0; i < n && error == 0; i++) {
		path = paths[i];
		error = rewrite(root(), &path, room + i * REWRITE_ROOM);
		to[i] = (char *)path; /* fts_open does not write to it */
	}
	to[n] = NULL;
	if (error == 0)
		return to;
	free(to);
	errno = error;
	return NULL;
}

#define WRAP_FTS(type, entry, name)                                       \
	REAL(name)                                                        \
	EXPORT type *name(char *const *paths, int options,                \
			  int (*compare)(const entry **, const entry **)) \
	{                                                                 \
		char **rewritten = rewrite_all(paths);                    \
		type *found;                                              \
		int error;                                                \
                                                                          \
		if (rewritten == NULL)                                    \
			return NULL;                                      \
		found = get_##name()(rewritten, options, compare);        \
		error = errno;                                            \
		free(rewritten);                                          \
		errno = error;                                            \
		return found;                                             \
	}

WRAP_FTS(FTS, FTSENT, fts_open)
WRAP_FTS(FTS64, FTSENT64, fts64_open)

/* File attributes */
WRAP(int, -1, stat, (const char *path, struct stat *st), path, st)
WRAP(int, -1, stat64, (const char *path, struct stat64 *st), path, st)
WRAP(int, -1, lstat, (const char *path, struct stat *st), path, st)
WRAP(int, -1, lstat64, (const char *path, struct stat64 *st), path, st)
WRAP(int, -1, fstatat, (int fd, const char *path, struct stat *st, int flags), fd, path, st, flags)
WRAP(int, -1, fstatat64, (int fd, const char *path, struct stat64 *st, int flags), fd, path, st,
     flags)
WRAP(int, -1, statx, (int fd, const char *path, int flags, unsigned int mask, struct statx *st), fd,
     path, flags, mask, st)
/* Programs built against a glibc before 2.33 call these. */
WRAP(int, -1, __xstat, (int version, const char *path, struct stat *st), version, path, st)
WRAP(int, -1, __xstat64, (int version, const char *path, struct stat64 *st), version, path, st)
WRAP(int, -1, __lxstat, (int version, const char *path, struct stat *st), version, path, st)
WRAP(int, -1, __lxstat64, (int version, const char *path, struct stat64 *st), version, path, st)
WRAP(int, -1, __fxstatat, (int version, int fd, const char *path, struct stat *st, int flags),
     version, fd, path, st, flags)
WRAP(int, -1, __fxstatat64, (int version, int fd, const char *path, struct stat64 *st, int flags),
     version, fd, path, st, flags)

/* Permissions */
WRAP(int, -1, access, (const char *path, int mode), path, mode)
WRAP(int, -1, eaccess, (const char *path, int mode), path, mode)
WRAP(int, -1, euidaccess, (const char *path, int mode), path, mode)
WRAP(int, -1, faccessat, (int fd, const char *path, int mode, int flags), fd, path, mode, flags)

/* Extended attributes, which ls reads */
WRAP(ssize_t, -1, getxattr, (const char *path, const char *name, void *value, size_t size), path,
     name, value, size)
WRAP(ssize_t, -1, lgetxattr, (const char *path, const char *name, void *value, size_t size), path,
     name, value, size)
WRAP(ssize_t, -1, listxattr, (const char *path, char *list, size_t size), path, list, size)
WRAP(ssize_t, -1, llistxattr, (const char *path, char *list, size_t size), path, list, size)

/* Links */
WRAP(ssize_t, -1, readlink, (const char *path, char *buf, size_t size), path, buf, size)
WRAP(ssize_t, -1, readlinkat, (int fd, const char *path, char *buf, size_t size), fd, path, buf,
     size)
WRAP(ssize_t, -1, __readlink_chk, (const char *path, char *buf, size_t size, size_t room_of_buf),
     path, buf, size, room_of_buf)
WRAP(ssize_t, -1, __readlinkat_chk,
     (int fd, const char *path, char *buf, size_t size, size_t room_of_buf), fd, path, buf, size,
     room_of_buf)
WRAP(char *, NULL, realpath, (const char *path, char *resolved), path, resolved)
WRAP(char *, NULL, __realpath_chk, (const char *path, char *resolved, size_t room_of_buf), path,
     resolved, room_of_buf)
WRAP(char *, NULL, canonicalize_file_name, (const char *path), path)
