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
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
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

#define AT(function) (uintptr_t) & (function)

/*
 * False if a function that porters call is not libc's own: nobody knows what an object that stands in for
 * libc needs. The sanitizers' runtime needs libc, too, and nothing else.
 */
bool porter_code_find(void)
{
	const uintptr_t called[] = {
		AT(recvmsg),
		AT(sendmsg),
		AT(read),
		AT(close),
		AT(close_range),
		AT(open),
		AT(statx),
		AT(fcntl),
		AT(poll),
		AT(prctl),
		AT(alarm),
		AT(usleep),
		AT(snprintf),
		AT(sigaction),
		AT(sigprocmask),
		AT(readlink),
		AT(process_vm_readv),
		AT(pread),
	};
	const uintptr_t beside[] = { AT(porter_code_find), AT(gnu_get_libc_version),
				     (uintptr_t)getauxval(AT_BASE) };
	bool libc_only = false;
	struct mapping m;

	foreigners = 0;
	if (!is_bound() || maps_open(&maps) != 0)
		return false;
	while (maps_next(&maps, &m) && foreigners < OBJECTS) {
		if (!m.executable || m.inode == 0)
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
