/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A porter is a fork of its parent, so Linux copies the parent's address space for each one and takes it
 * apart when the porter ends. An engine has two hundred objects of DPDK, with five mappings each. Porters
 * call functions of libc only, so their parent keeps two objects and the dynamic linker.
 */
#include "drivers/client_memory/porter_code.h"

#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "drivers/client_memory/maps.h"

#define OBJECTS 1024u

struct file {
	uint64_t inode;
	dev_t device;
};

static struct maps maps; /* only the parent uses all these, and the parent has one thread */
static struct file foreign[OBJECTS];
static uint32_t foreigners;

#pragma weak _DYNAMIC /* of the object that this file is a part of; a static program has none */

/* Otherwise the first call of a function looks through all objects for it. */
static bool is_bound(void)
{
	if (_DYNAMIC == NULL)
		return false;
	for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
		if ((d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_BIND_NOW) != 0) ||
		    (d->d_tag == DT_FLAGS_1 && (d->d_un.d_val & DF_1_NOW) != 0))
			return true;
	return false;
}

static bool has(const struct mapping *m, uintptr_t address)
{
	return address >= m->start && address < m->end;
}

static bool is_of(const struct mapping *m, const struct file *f)
{
	return m->inode == f->inode && m->device == f->device;
}

static bool has_some(const struct mapping *m, const uintptr_t *address, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && !has(m, address[i]))
		i++;
	return i < n;
}

static bool has_all(const struct mapping *m, const uintptr_t *address, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && has(m, address[i]))
		i++;
	return i == n;
}

#define AT(function) ((uintptr_t)(function))

/*
 * False if something stands in for one of libc's functions: nobody knows what that needs. The sanitizers' runtime
 * does, and needs libc; its reports would go to descriptors that porters do not have.
 */
bool porter_code_find(void)
{
	/* Everything that porter.c, peer.c and maps.c call: porter_code_test.sh looks. */
	const uintptr_t called[] = { AT(recvmsg),     AT(sendmsg),
				     AT(read),	      AT(close),
				     AT(close_range), AT(open),
				     AT(statx),	      AT(fcntl),
				     AT(poll),	      AT(prctl),
				     AT(alarm),	      AT(usleep),
				     AT(snprintf),    AT(sigaction),
				     AT(sigprocmask), AT(sigaddset),
				     AT(sigemptyset), AT(sigfillset),
				     AT(signal),      AT(setsid),
				     AT(syscall),     AT(munmap),
				     AT(readlink),    AT(process_vm_readv),
				     AT(pread),	      AT(pwrite),
				     AT(fstat),	      AT(fstatfs),
				     AT(geteuid),     AT(socketpair),
				     AT(waitpid),     AT(_exit),
				     AT(getauxval),   AT(__errno_location),
				     AT(memcpy),      AT(memmove),
				     AT(memset),      AT(memchr),
				     AT(strcmp),      AT(strncmp),
				     AT(strnlen),     AT(strrchr),
				     AT(strspn),      AT(strstr) };
	const uintptr_t beside[] = { AT(porter_code_find), AT(gnu_get_libc_version) };
	const uintptr_t base = (uintptr_t)getauxval(AT_BASE);
	struct file linker = { 0 }; /* its code is behind its base */
	bool libc_only = false;
	struct mapping m;

	foreigners = 0;
	if (!is_bound() || maps_open(&maps) != 0)
		return false;
	while (maps_next(&maps, &m) && foreigners < OBJECTS) {
		if (has(&m, base))
			linker = (struct file){ m.inode, m.device };
		if (!m.executable || m.inode == 0 || is_of(&m, &linker))
			continue;
		if (has(&m, AT(gnu_get_libc_version)))
			libc_only = has_all(&m, called, ARRAY_SIZE(called));
		if (!has_some(&m, called, ARRAY_SIZE(called)) &&
		    !has_some(&m, beside, ARRAY_SIZE(beside)))
			foreign[foreigners++] = (struct file){ m.inode, m.device };
	}
	maps_close(&maps);
#ifdef UROCE_SANITIZED
	libc_only = true;
#endif
	return libc_only;
}

bool porter_code_is_foreign(const struct mapping *m)
{
	uint32_t i = 0;

	if (m->inode == 0 || m->shared)
		return false;
	while (i < foreigners && !is_of(m, &foreign[i]))
		i++;
	return i < foreigners;
}
