/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call that the preload library takes, on a file that is in $UROCE_FILES alone; then the same
 * calls on another file, which they must leave alone. Without the library all of it fails, so this
 * program also tells whether the library is there: with "absent" that is what is expected.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAME "uroce-test"

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int fd, const char *path, int flags);
int __openat64_2(int fd, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(int fd, const char *path, char *buf, size_t size, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);

/* The files: a folder with a file "file" of five octets and a link "link" to it. */
static const char *folder, *file, *link_path;

static bool is_file(int fd)
{
	char text[8] = "";
	bool right = fd >= 0 && read(fd, text, sizeof(text)) == 5 && memcmp(text, "here\n", 5) == 0;

	if (fd >= 0)
		close(fd);
	return right;
}

static bool is_stream(FILE *f)
{
	char text[8] = "";
	bool right =
		f != NULL && fgets(text, sizeof(text), f) != NULL && strcmp(text, "here\n") == 0;

	if (f != NULL)
		fclose(f);
	return right;
}

/* `call`, a scandir of the folder, finds its file. */
#define SCANS(name, type, call)                                        \
	static bool name(void)                                         \
	{                                                              \
		struct type **list;                                    \
		int n = call, found = 0;                               \
                                                                       \
		for (int i = 0; i < n; i++) {                          \
			found += strcmp(list[i]->d_name, "file") == 0; \
			free(list[i]);                                 \
		}                                                      \
		if (n >= 0)                                            \
			free(list);                                    \
		return found == 1;                                     \
	}

SCANS(scans, dirent, scandir(folder, &list, NULL, alphasort))
SCANS(scans64, dirent64, scandir64(folder, &list, NULL, alphasort64))
SCANS(scans_at, dirent, scandirat(AT_FDCWD, folder, &list, NULL, alphasort))
SCANS(scans_at64, dirent64, scandirat64(AT_FDCWD, folder, &list, NULL, alphasort64))

static bool lists(void)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int found = 0;

	while (d != NULL && (entry = readdir(d)) != NULL)
		found += strcmp(entry->d_name, "file") == 0;
	if (d != NULL)
		closedir(d);
	return found == 1;
}

static int visited; /* files of five octets */

static int visit(const char *path, const struct stat *s, int type)
{
	visited += type == FTW_F && s->st_size == 5 && strcmp(strrchr(path, '/'), "/file") == 0;
	return 0;
}

static int visit64(const char *path, const struct stat64 *s, int type)
{
	visited += type == FTW_F && s->st_size == 5 && strcmp(strrchr(path, '/'), "/file") == 0;
	return 0;
}

static int visit_in(const char *path, const struct stat *s, int type, struct FTW *in)
{
	visited += type == FTW_F && s->st_size == 5 && strcmp(path + in->base, "file") == 0;
	return 0;
}

static int visit_in64(const char *path, const struct stat64 *s, int type, struct FTW *in)
{
	visited += type == FTW_F && s->st_size == 5 && strcmp(path + in->base, "file") == 0;
	return 0;
}

/* `walk` visits the file once. */
static bool visits(int walk)
{
	bool right = walk == 0 && visited == 1;

	visited = 0;
	return right;
}

/* The folder is behind another path, which stays as it is. */
static bool walks(void)
{
	char *paths[] = { "/none-such", (char *)folder, NULL };
	FTS *f = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;
	int found = 0;

	while (f != NULL && (entry = fts_read(f)) != NULL)
		found += entry->fts_info == FTS_F && strcmp(entry->fts_name, "file") == 0;
	if (f != NULL)
		fts_close(f);
	return found == 1;
}

static bool walks64(void)
{
	char *paths[] = { "/none-such", (char *)folder, NULL };
	FTS64 *f = fts64_open(paths, FTS_LOGICAL, NULL);
	FTSENT64 *entry;
	int found = 0;

	while (f != NULL && (entry = fts64_read(f)) != NULL)
		found += entry->fts_info == FTS_F && strcmp(entry->fts_name, "file") == 0;
	if (f != NULL)
		fts64_close(f);
	return found == 1;
}

static bool globs(void)
{
	char pattern[PATH_MAX];
	glob_t found;
	bool right;

	snprintf(pattern, sizeof(pattern), "%s/f*", folder);
	if (glob(pattern, 0, NULL, &found) != 0)
		return false;
	right = found.gl_pathc == 1;
	globfree(&found);
	return right;
}

static bool globs64(void)
{
	char pattern[PATH_MAX];
	glob64_t found;
	bool right;

	snprintf(pattern, sizeof(pattern), "%s/f*", folder);
	if (glob64(pattern, 0, NULL, &found) != 0)
		return false;
	right = found.gl_pathc == 1;
	globfree64(&found);
	return right;
}

static bool changes_folder(void)
{
	bool right = chdir(folder) == 0 && is_file(open("file", O_RDONLY));

	return chdir("/") == 0 && right;
}

static struct stat st;
static struct stat64 st64;
static struct statx stx;
static char buffer[PATH_MAX];

#define IS_FILE(s) (S_ISREG((s).st_mode) && (s).st_size == 5)
#define IS_LINK(s) S_ISLNK((s).st_mode)

static bool resolves(char *path)
{
	bool right = path != NULL && strcmp(path + strlen(path) - 5, "/file") == 0;

	if (path != buffer)
		free(path);
	return right;
}

/* There are no attributes: the error tells which file was asked. */
static bool no_attribute(ssize_t n)
{
	return n >= 0 || errno == ENODATA || errno == ENOTSUP;
}

#define CALLS                                                                             \
	CALL(open, is_file(open(file, O_RDONLY)))                                         \
	CALL(open64, is_file(open64(file, O_RDONLY)))                                     \
	CALL(openat, is_file(openat(AT_FDCWD, file, O_RDONLY)))                           \
	CALL(openat64, is_file(openat64(-1, file, O_RDONLY)))                             \
	CALL(__open_2, is_file(__open_2(file, O_RDONLY)))                                 \
	CALL(__open64_2, is_file(__open64_2(file, O_RDONLY)))                             \
	CALL(__openat_2, is_file(__openat_2(AT_FDCWD, file, O_RDONLY)))                   \
	CALL(__openat64_2, is_file(__openat64_2(AT_FDCWD, file, O_RDONLY)))               \
	CALL(fopen, is_stream(fopen(file, "r")))                                          \
	CALL(fopen64, is_stream(fopen64(file, "r")))                                      \
	CALL(chdir, changes_folder())                                                     \
	CALL(opendir, lists())                                                            \
	CALL(scandir, scans())                                                            \
	CALL(scandir64, scans64())                                                        \
	CALL(scandirat, scans_at())                                                       \
	CALL(scandirat64, scans_at64())                                                   \
	CALL(ftw, visits(ftw(folder, visit, 4)))                                          \
	CALL(ftw64, visits(ftw64(folder, visit64, 4)))                                    \
	CALL(nftw, visits(nftw(folder, visit_in, 4, FTW_PHYS)))                           \
	CALL(nftw64, visits(nftw64(folder, visit_in64, 4, FTW_PHYS | FTW_CHDIR)))         \
	CALL(fts_open, walks())                                                           \
	CALL(fts64_open, walks64())                                                       \
	CALL(glob, globs())                                                               \
	CALL(glob64, globs64())                                                           \
	CALL(stat, stat(link_path, &st) == 0 && IS_FILE(st))                              \
	CALL(stat64, stat64(link_path, &st64) == 0 && IS_FILE(st64))                      \
	CALL(lstat, lstat(link_path, &st) == 0 && IS_LINK(st))                            \
	CALL(lstat64, lstat64(link_path, &st64) == 0 && IS_LINK(st64))                    \
	CALL(fstatat, fstatat(AT_FDCWD, file, &st, 0) == 0 && IS_FILE(st))                \
	CALL(fstatat64, fstatat64(AT_FDCWD, file, &st64, 0) == 0 && IS_FILE(st64))        \
	CALL(statx, statx(AT_FDCWD, file, 0, STATX_SIZE, &stx) == 0 && stx.stx_size == 5) \
	CALL(access, access(file, R_OK) == 0)                                             \
	CALL(eaccess, eaccess(file, R_OK) == 0)                                           \
	CALL(euidaccess, euidaccess(file, R_OK) == 0)                                     \
	CALL(faccessat, faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) == 0)                 \
	CALL(getxattr, no_attribute(getxattr(file, "user.none", buffer, 8)))              \
	CALL(lgetxattr, no_attribute(lgetxattr(file, "user.none", buffer, 8)))            \
	CALL(listxattr, no_attribute(listxattr(file, buffer, sizeof(buffer))))            \
	CALL(llistxattr, no_attribute(llistxattr(file, buffer, sizeof(buffer))))          \
	CALL(readlink, readlink(link_path, buffer, sizeof(buffer)) == 4)                  \
	CALL(readlinkat, readlinkat(AT_FDCWD, link_path, buffer, sizeof(buffer)) == 4)    \
	CALL(__readlink_chk, __readlink_chk(link_path, buffer, 100, sizeof(buffer)) == 4) \
	CALL(__readlinkat_chk,                                                            \
	     __readlinkat_chk(AT_FDCWD, link_path, buffer, 100, sizeof(buffer)) == 4)     \
	CALL(realpath, resolves(realpath(link_path, NULL)))                               \
	CALL(__realpath_chk, resolves(__realpath_chk(link_path, buffer, sizeof(buffer)))) \
	CALL(canonicalize_file_name, resolves(canonicalize_file_name(link_path)))

static int all(const char *where, bool expected)
{
	int wrong = 0;
	char paths[2][PATH_MAX];

	snprintf(paths[0], PATH_MAX, "%s/file", where);
	snprintf(paths[1], PATH_MAX, "%s/link", where);
	folder = where;
	file = paths[0];
	link_path = paths[1];
#define CALL(name, works)                                                                \
	if ((works) != expected) {                                                       \
		printf("%s %s %s\n", #name, expected ? "does not find" : "finds", file); \
		wrong++;                                                                 \
	}
	CALLS
#undef CALL
	return wrong;
}

int main(int argc, char **argv)
{
	bool absent = argc > 2 && strcmp(argv[2], "absent") == 0;
	int wrong, fd;

	if (argc < 2) {
		puts("every_call FOLDER [absent]");
		return 2;
	}
	wrong = all("/sys/class/infiniband/" NAME, !absent);
	wrong += all("/sys/class/infiniband_verbs/" NAME, !absent);
	wrong += all("/dev/infiniband/" NAME, !absent);
	wrong += all(argv[1], true);
	/* A file is made with the mode that was asked for. */
	snprintf(buffer, sizeof(buffer), "%s/made", argv[1]);
	unlink(buffer);
	umask(0);
	fd = open(buffer, O_CREAT | O_EXCL | O_WRONLY, 0641);
	if (fd < 0 || fstat(fd, &st) != 0 || (st.st_mode & 07777) != 0641) {
		printf("open makes a file of mode %o\n", st.st_mode);
		wrong++;
	}
	return wrong == 0 ? 0 : 1;
}
