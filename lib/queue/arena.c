/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A buddy allocator hands out pages. Smaller ranges come from pages that are cut into equal chunks.
 * The allocator keeps one entry for each page in private memory, which costs nothing until the page
 * is used.
 */
#include "queue/arena.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"

#define PAGE_SHIFT  12u
#define PAGE_OCTETS ((size_t)1 << PAGE_SHIFT)
#define PAGES	    ((uint32_t)(LIMIT_ARENA_BYTES >> PAGE_SHIFT))
#define ORDERS	    22u /* blocks of 2^0 .. 2^21 pages */
#define CHUNK_MIN   64u
#define CHUNK_SIZES 6u /* 64, 128 .. 2048 octets */
#define NOBODY	    UINT32_MAX

static_assert(PAGES == 1u << (ORDERS - 1), "the largest block is the whole arena");
static_assert(sizeof(struct client_page) <= 2048, "the client page is the arena's first chunk");

struct page {
	uint64_t chunks; /* cut pages: which chunks are taken */
	uint32_t next, previous; /* in the list of free blocks, or of cut pages with free chunks */
	uint8_t order; /* of the block that begins here */
	bool free; /* a free block begins here */
};

struct arena {
	int fd;
	uint8_t *base;
	struct page *page;
	uint32_t blocks[ORDERS]; /* lists of free blocks */
	uint32_t cut[CHUNK_SIZES]; /* lists of cut pages with room */
};

static void list_enter(struct arena *a, uint32_t *list, uint32_t page)
{
	a->page[page].previous = NOBODY;
	a->page[page].next = *list;
	if (*list != NOBODY)
		a->page[*list].previous = page;
	*list = page;
}

static void list_leave(struct arena *a, uint32_t *list, uint32_t page)
{
	struct page *p = &a->page[page];

	if (p->previous == NOBODY)
		*list = p->next;
	else
		a->page[p->previous].next = p->next;
	if (p->next != NOBODY)
		a->page[p->next].previous = p->previous;
}

static void block_put(struct arena *a, uint32_t page, uint32_t order)
{
	a->page[page].order = (uint8_t)order;
	a->page[page].free = true;
	list_enter(a, &a->blocks[order], page);
}

static void block_take(struct arena *a, uint32_t page)
{
	a->page[page].free = false;
	list_leave(a, &a->blocks[a->page[page].order], page);
}

static uint32_t pages_allocate(struct arena *a, uint32_t order)
{
	uint32_t from = order, page;

	while (from < ORDERS && a->blocks[from] == NOBODY)
		from++;
	if (from >= ORDERS)
		return NOBODY;
	page = a->blocks[from];
	block_take(a, page);
	while (from > order) {
		from--;
		block_put(a, page + (1u << from), from);
	}
	a->page[page].order = (uint8_t)order;
	return page;
}

static void pages_free(struct arena *a, uint32_t page, uint32_t order)
{
	/* if it fails, old octets stay in the pages; they are this client's own */
	madvise(a->base + ((size_t)page << PAGE_SHIFT), PAGE_OCTETS << order,
		a->fd >= 0 ? MADV_REMOVE : MADV_DONTNEED);
	while (order + 1 < ORDERS) {
		uint32_t buddy = page ^ (1u << order);

		if (!a->page[buddy].free || a->page[buddy].order != order)
			break;
		block_take(a, buddy);
		page &= ~(1u << order);
		order++;
	}
	block_put(a, page, order);
}

static uint32_t order_of(size_t octets)
{
	uint32_t order = 0;

	while (order < ORDERS && (PAGE_OCTETS << order) < octets)
		order++;
	return order;
}

static uint32_t chunk_size_of(size_t octets)
{
	uint32_t size = 0;

	while ((CHUNK_MIN << size) < octets)
		size++;
	return size;
}

static uint64_t all_chunks(uint32_t size)
{
	uint32_t count = (uint32_t)PAGE_OCTETS / (CHUNK_MIN << size);

	return count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static uint64_t chunk_allocate(struct arena *a, uint32_t size)
{
	uint32_t page = a->cut[size], chunk;
	uint64_t offset;

	if (page == NOBODY) {
		page = pages_allocate(a, 0);
		if (page == NOBODY)
			return 0;
		a->page[page].chunks = 0;
		list_enter(a, &a->cut[size], page);
	}
	chunk = (uint32_t)__builtin_ctzll(~a->page[page].chunks);
	a->page[page].chunks |= UINT64_C(1) << chunk;
	if (a->page[page].chunks == all_chunks(size))
		list_leave(a, &a->cut[size], page);
	offset = ((uint64_t)page << PAGE_SHIFT) + (uint64_t)chunk * (CHUNK_MIN << size);
	memset(a->base + offset, 0, CHUNK_MIN << size);
	return offset;
}

/*
 * The only page with room stays for the next chunk of its size. Otherwise a program that makes and
 * destroys one object again and again would get a new page from the kernel each time.
 */
static bool is_spare(const struct arena *a, uint32_t page, uint32_t size)
{
	return a->cut[size] == page && a->page[page].next == NOBODY;
}

static void chunk_free(struct arena *a, uint64_t offset, uint32_t size)
{
	uint32_t page = (uint32_t)(offset >> PAGE_SHIFT);
	uint32_t chunk = (uint32_t)(offset & (PAGE_OCTETS - 1)) / (CHUNK_MIN << size);
	bool was_full = a->page[page].chunks == all_chunks(size);

	assert((a->page[page].chunks >> chunk & 1) && "freed once, with the size it was asked for");
	a->page[page].chunks &= ~(UINT64_C(1) << chunk);
	if (was_full)
		list_enter(a, &a->cut[size], page);
	if (a->page[page].chunks == 0 && !is_spare(a, page, size)) {
		list_leave(a, &a->cut[size], page);
		pages_free(a, page, 0);
	}
}

static void *map_private(size_t octets)
{
	void *p = mmap(NULL, octets, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int make_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)LIMIT_ARENA_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		int saved = errno;

		close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}

static void all_free(struct arena *a)
{
	uint64_t client_page;

	for (uint32_t i = 0; i < ORDERS; i++)
		a->blocks[i] = NOBODY;
	for (uint32_t i = 0; i < CHUNK_SIZES; i++)
		a->cut[i] = NOBODY;
	block_put(a, 0, ORDERS - 1);
	client_page = arena_allocate(a, PAGE_OCTETS);
	assert(client_page == 0 && "the first page of a fresh arena is page 0");
	(void)client_page;
}

/* Takes over the descriptor. */
static struct arena *make_arena(int fd)
{
	struct arena *a = calloc(1, sizeof(*a));
	int saved;

	if (a == NULL)
		goto no_arena;
	a->fd = fd;
	a->page = map_private(PAGES * sizeof(*a->page));
	if (a->page == NULL)
		goto no_pages;
	if (fd < 0) {
		a->base = map_private(LIMIT_ARENA_BYTES);
	} else {
		void *p = mmap(NULL, LIMIT_ARENA_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_NORESERVE, fd, 0);

		a->base = p == MAP_FAILED ? NULL : p;
	}
	if (a->base == NULL)
		goto no_base;
	/* keeps 8 GiB for each client out of the engine's core files */
	madvise(a->base, LIMIT_ARENA_BYTES, MADV_DONTDUMP);
	all_free(a);
	return a;

no_base:
	saved = errno;
	munmap(a->page, PAGES * sizeof(*a->page));
	errno = saved;
no_pages:
	saved = errno;
	free(a);
	errno = saved;
no_arena:
	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return NULL;
}

struct arena *arena_create_shared(const char *name)
{
	int fd = make_file(name);

	return fd < 0 ? NULL : make_arena(fd);
}

struct arena *arena_create_private(void)
{
	return make_arena(-1);
}

void arena_destroy(struct arena *a)
{
	if (a == NULL)
		return;
	munmap(a->base, LIMIT_ARENA_BYTES);
	munmap(a->page, PAGES * sizeof(*a->page));
	if (a->fd >= 0)
		close(a->fd);
	free(a);
}

int arena_fd(const struct arena *a)
{
	return a->fd;
}

void *arena_base(const struct arena *a)
{
	return a->base;
}

uint64_t arena_allocate(struct arena *a, size_t octets)
{
	uint32_t page, order;

	if (octets == 0 || octets > LIMIT_ARENA_BYTES)
		return 0;
	if (octets < PAGE_OCTETS && chunk_size_of(octets) < CHUNK_SIZES)
		return chunk_allocate(a, chunk_size_of(octets));
	order = order_of(octets);
	page = pages_allocate(a, order);
	return page == NOBODY ? 0 : (uint64_t)page << PAGE_SHIFT;
}

void arena_free(struct arena *a, uint64_t offset, size_t octets)
{
	if (offset == 0)
		return;
	if (octets < PAGE_OCTETS && chunk_size_of(octets) < CHUNK_SIZES)
		chunk_free(a, offset, chunk_size_of(octets));
	else
		pages_free(a, (uint32_t)(offset >> PAGE_SHIFT), order_of(octets));
}
