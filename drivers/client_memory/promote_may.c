/* SPDX-License-Identifier: BSD-3-Clause */
/* Which memory may be promoted. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/client_memory/promote_private.h"

static bool holds(uintptr_t from, uintptr_t to, const void *object)
{
	return (uintptr_t)object >= from && (uintptr_t)object < to;
}

static bool has_policy(uintptr_t address)
{
	int mode = MPOL_DEFAULT;

	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, address, MPOL_F_ADDR) < 0)
		return false; /* the kernel has no NUMA */
	return mode != MPOL_DEFAULT;
}

/*
 * Whether the range holds the caller's own stack or thread-local storage, which the caller needs
 * while the range is held. The maps show the stack of the first thread. Other threads have their
 * storage at the top of their stack.
 */
static bool is_callers_own(uintptr_t from, uintptr_t to)
{
	uintptr_t self = (uintptr_t)pthread_self();
	pthread_attr_t attr;
	void *stack;
	size_t octets;
	int error;

	if (holds(from, to, (const void *)self) || holds(from, to, &errno))
		return true;
	if (gettid() == getpid())
		return false;
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return true;
	error = pthread_attr_getstack(&attr, &stack, &octets);
	pthread_attr_destroy(&attr);
	return error != 0 || (from < (uintptr_t)stack + octets && to > (uintptr_t)stack);
}

static bool is_own_data(uintptr_t from, uintptr_t to)
{
	uintptr_t data = (uintptr_t)&promote_state;

	return from < data + sizeof(promote_state) && to > data;
}

bool promote_allowed(const struct mapping *m)
{
	return !m->shared && m->inode == 0 && m->readable && m->writable && !m->executable &&
	       !m->stack && !m->special && !is_own_data(m->start, m->end) &&
	       !is_callers_own(m->start, m->end) && !has_policy(m->start);
}
