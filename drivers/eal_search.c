/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/eal_search.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYSFS	"/sys/devices/system/"
#define LIBRARY "librte_"
#define BEFORE	__attribute__((visibility("default"))) /* ... libc's function of this name */

static const char *const *wanted;
static size_t count;

void eal_search_want(const char *const *driver, size_t drivers)
{
	wanted = driver;
	count = drivers;
}

static bool is_left_out(const char *file)
{
	if (wanted == NULL || strncmp(file, LIBRARY, strlen(LIBRARY)) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strncmp(file + strlen(LIBRARY), wanted[i], strlen(wanted[i])) == 0)
			return false;
	return true;
}

/* The compiler knows it as readdir64(), as the EAL's. */
BEFORE struct dirent *readdir(DIR *folder)
{
	static void *libc;
	struct dirent *(*next)(DIR *) =
		(struct dirent * (*)(DIR *)) __atomic_load_n(&libc, __ATOMIC_RELAXED);
	struct dirent *entry;

	if (next == NULL) {
		next = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir64");
		__atomic_store_n(&libc, (void *)next, __ATOMIC_RELAXED);
	}
	do
		entry = next(folder);
	while (entry != NULL && is_left_out(entry->d_name));
	return entry;
}

/* Moves past `word` and the number behind it. */
static bool number_behind(const char **path, const char *word, unsigned long *number)
{
	size_t length = strlen(word);
	char *end;

	if (strncmp(*path, word, length) != 0 || !isdigit((unsigned char)(*path)[length]))
		return false;
	*number = strtoul(*path + length, &end, 10);
	*path = end;
	return true;
}

bool eal_search_is_past(const char *path, unsigned long last_cpu, unsigned long last_node)
{
	unsigned long number;

	if (number_behind(&path, SYSFS "cpu/cpu", &number))
		return number > last_cpu;
	if (!number_behind(&path, SYSFS "node/node", &number))
		return false;
	return number > last_node || (number_behind(&path, "/cpu", &number) && number > last_cpu);
}

unsigned long eal_search_last(const char *list)
{
	size_t end = strcspn(list, "\n"), start = end;

	while (start > 0 && isdigit((unsigned char)list[start - 1]))
		start--;
	return start < end ? strtoul(list + start, NULL, 10) : ULONG_MAX;
}

/* The kernel never adds a processor or a node to those that are possible. */
static unsigned long last_possible(const char *file)
{
	char list[256];
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t octets = fd >= 0 ? read(fd, list, sizeof(list) - 1) : 0;

	if (fd >= 0)
		close(fd);
	if (octets <= 0 || list[octets - 1] != '\n')
		return ULONG_MAX;
	list[octets] = '\0';
	return eal_search_last(list);
}

BEFORE int access(const char *path, int mode)
{
	/* One more than the last number; 0: not yet known. Threads that find it at once find the same. */
	static unsigned long cpus, nodes;
	unsigned long cpu, node;

	if (mode != F_OK || strncmp(path, SYSFS, strlen(SYSFS)) != 0)
		return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
	cpu = __atomic_load_n(&cpus, __ATOMIC_RELAXED);
	node = __atomic_load_n(&nodes, __ATOMIC_RELAXED);
	if (cpu == 0 || node == 0) {
		cpu = last_possible(SYSFS "cpu/possible");
		node = last_possible(SYSFS "node/possible");
		cpu += cpu != ULONG_MAX;
		node += node != ULONG_MAX;
		__atomic_store_n(&cpus, cpu, __ATOMIC_RELAXED);
		__atomic_store_n(&nodes, node, __ATOMIC_RELAXED);
	}
	if (eal_search_is_past(path, cpu - 1, node - 1)) {
		errno = ENOENT;
		return -1;
	}
	return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}
