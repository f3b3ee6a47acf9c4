/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first and the last page of a region, if it does not fill them. They move with it where the
 * rest of them is known to be nobody else's: in a block that malloc has mapped for one allocation.
 *
 *	| page          | page | ... | page          |
 *	|hd| the region               |  unused      |	hd: sizes of the allocation, 16 octets
 *
 * In all other pages there may be data that must not move without its owner's knowledge, see
 * docs/decisions/0003-client-memory.md.
 */
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#include "drivers/client_memory/promote_private.h"

#define HEADER	  16u /* before the first octet, in glibc with 64 bit */
#define IS_MAPPED 2u /* the only one of three flags that such a block has */
#define FLAGS	  7u

/* The allocator's; what is not there any more is no reason to crash. */
static bool read_header(uintptr_t region, uint64_t header[2])
{
	struct iovec to = { header, HEADER };
	struct iovec from = { (void *)(region - HEADER), HEADER };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == HEADER;
}

bool promote_owns_edges(uintptr_t region, uint64_t length)
{
	uint64_t header[2], before, size;
	uintptr_t block, end;

	if (region % PAGE < HEADER || region % HEADER != 0 || !read_header(region, header))
		return false;
	before = header[0]; /* what alignment left over in the block */
	size = header[1];
	if (before >= PAGE || (size & FLAGS) != IS_MAPPED || size > PROMOTE_LENGTH_MAX + PAGE)
		return false;
	block = region - HEADER - before;
	end = region - HEADER + (size & ~(uint64_t)FLAGS);
	return block % PAGE == 0 && end % PAGE == 0 && region + length <= end;
}
