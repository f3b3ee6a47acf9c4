/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first and last page of a region that fills them only in part. They are promoted with the
 * region only if they hold nothing else. That is so in a block that malloc has mapped for one
 * allocation.
 *
 *	| page          | page | ... | page          |
 *	|hd| the region               |  unused      |	hd: sizes of the allocation, 16 octets
 *
 * All other pages may hold data of code that does not expect promotion; see
 * docs/decisions/0003-client-memory.md.
 */
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#include "drivers/client_memory/promote_private.h"

#define HEADER	  16u /* octets of glibc's header before an allocation, 64 bit */
#define IS_MAPPED 2u /* the only one of the three flags that such a block has set */
#define FLAGS	  7u

/* Reads glibc's header, with process_vm_readv, because the memory may be unmapped meanwhile. */
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
	before = header[0]; /* octets at the start of the block that alignment left unused */
	size = header[1];
	if (before >= PAGE || (size & FLAGS) != IS_MAPPED || size > LIMIT_PROMOTE_LENGTH + PAGE)
		return false;
	block = region - HEADER - before;
	end = region - HEADER + (size & ~(uint64_t)FLAGS);
	return block % PAGE == 0 && end % PAGE == 0 && region + length <= end;
}
