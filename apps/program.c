/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "files.h"

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int take(const char *name, char path[PATH_MAX], char *why, size_t why_size)
{
	if (strlen(name) < PATH_MAX && is_program(name)) {
		strcpy(path, name);
		return 0;
	}
	snprintf(why, why_size, "%s: %s", name,
		 access(name, F_OK) == 0 ? "is not an executable file" : strerror(errno));
	return access(name, F_OK) == 0 ? PROGRAM_NOT_RUNNABLE : PROGRAM_NOT_FOUND;
}

int program_find(const char *name, char path[PATH_MAX], char *why, size_t why_size)
{
	const char *folder = getenv("PATH");

	if (strchr(name, '/') != NULL)
		return take(name, path, why, why_size);
	if (folder == NULL)
		folder = "/usr/local/bin:/usr/bin:/bin";
	while (name[0] != '\0') {
		int length = (int)strcspn(folder, ":");

		if (snprintf(path, PATH_MAX, "%.*s%s/%s", length, folder, length == 0 ? "." : "",
			     name) < PATH_MAX &&
		    is_program(path))
			return 0;
		if (folder[length] == '\0')
			break;
		folder += length + 1;
	}
	snprintf(why, why_size, "%s: not found in PATH", name);
	return PROGRAM_NOT_FOUND;
}

/*
 * A dynamically linked program names its loader. The kernel decides about files that are not ELF.
 */
static bool is_static(int fd)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;

	if (pread(fd, &e, sizeof(e), 0) != (ssize_t)sizeof(e) ||
	    memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (unsigned int i = 0; i < e.e_phnum; i++) {
		off_t at = (off_t)(e.e_phoff + (Elf64_Off)i * e.e_phentsize);

		if (pread(fd, &p, sizeof(p), at) != (ssize_t)sizeof(p))
			return false;
		if (p.p_type == PT_INTERP)
			return false;
	}
	return true;
}

static const char *obstacle(int fd, const struct stat *st)
{
	if ((st->st_mode & S_ISUID) != 0 && st->st_uid != geteuid())
		return "is setuid: the loader ignores LD_LIBRARY_PATH for it";
	if ((st->st_mode & S_ISGID) != 0 && st->st_gid != getegid())
		return "is setgid: the loader ignores LD_LIBRARY_PATH for it";
	/*
	 * Root gains nothing from file capabilities, so the loader does not treat the program
	 * specially.
	 */
	if (geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return "has file capabilities: the loader ignores LD_LIBRARY_PATH for it";
	if (is_static(fd))
		return "is statically linked: it cannot use uroce's libraries";
	return NULL;
}

int program_check(const char *path, char *why, size_t why_size)
{
	struct stat st;
	const char *what;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0; /* executable but not readable, so it cannot be checked */
	what = fstat(fd, &st) == 0 ? obstacle(fd, &st) : NULL;
	close(fd);
	if (what == NULL)
		return 0;
	snprintf(why, why_size, "%s %s", path, what);
	return PROGRAM_NOT_RUNNABLE;
}

/* The folder of the running program. */
static int own_folder(char path[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (length <= 0)
		return -1;
	path[length] = '\0';
	*strrchr(path, '/') = '\0';
	return 0;
}

/* The first of `candidates`, relative to `folder` or absolute, that contains `file`. */
static int first_with(const char *folder, const char *const *candidates, const char *file,
		      char path[PATH_MAX])
{
	char found[2 * PATH_MAX], tried[2 * PATH_MAX + 32];

	for (; *candidates != NULL; candidates++) {
		bool absolute = (*candidates)[0] == '/';

		if (absolute)
			snprintf(found, sizeof(found), "%s", *candidates);
		else
			snprintf(found, sizeof(found), "%s/%s", folder, *candidates);
		snprintf(tried, sizeof(tried), "%s/%s", found, file);
		if (access(tried, R_OK) == 0)
			return realpath(found, path) != NULL ? 0 : -1;
	}
	return -1;
}

/*
 * The folder of one of our libraries: in a build relative to this program's, otherwise as
 * installed.
 */
static int folder_of(const char *beside, const char *library, char path[PATH_MAX], char *why,
		     size_t why_size)
{
	const char *const candidates[] = { beside, UROCE_LIBRARY_FOLDER, NULL };
	char folder[PATH_MAX];

	if (own_folder(folder) == 0 && first_with(folder, candidates, library, path) == 0)
		return 0;
	snprintf(why, why_size, "cannot find uroce's %s in %s/%s or %s", library, folder, beside,
		 UROCE_LIBRARY_FOLDER);
	return -1;
}

int library_folders(char path[3 * PATH_MAX], char *why, size_t why_size)
{
	static const char *const library[][2] = { { "../lib/verbs", "libibverbs.so.1" },
						  { "../lib/rdmacm", "librdmacm.so.1" },
						  { "../lib/preload", FILES_LIBRARY } };
	char folder[PATH_MAX], last[PATH_MAX] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < sizeof(library) / sizeof(library[0]); i++) {
		if (folder_of(library[i][0], library[i][1], folder, why, why_size) != 0)
			return -1;
		/* an installation has all of them in one folder */
		if (strcmp(folder, last) != 0)
			used += (size_t)snprintf(path + used, 3 * PATH_MAX - used, "%s%s",
						 i == 0 ? "" : ":", folder);
		strcpy(last, folder);
	}
	return 0;
}

int own_program(const char *name, char path[PATH_MAX], char *why, size_t why_size)
{
	/* Installed: bin or sbin. In a build the simulator is with the tests that share it. */
	static const char *const candidates[] = { ".", "../sbin", "../bin", "../tests/sim", NULL };
	char folder[PATH_MAX];
	size_t used;

	if (own_folder(folder) == 0 && first_with(folder, candidates, name, path) == 0) {
		used = strlen(path);
		if (snprintf(path + used, PATH_MAX - used, "/%s", name) < (int)(PATH_MAX - used))
			return 0;
	}
	snprintf(why, why_size, "cannot find %s beside this program", name);
	return -1;
}
