/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory as a program sees it. Each row of docs/memory.md is executed with promoted
 * pages and without, and the results are compared.
 */
#ifndef TESTS_VERBS_SEEN_H
#define TESTS_VERBS_SEEN_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SEEN_PAGE   ((size_t)4096)
#define SEEN_PAGES  ((size_t)64)
#define SEEN_OCTETS (SEEN_PAGES * SEEN_PAGE)
#define SEEN_HALF   (SEEN_OCTETS / 2)

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* Called in a separate process, with an engine at $UROCE_SOCKET. */
struct seen {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	union ibv_gid gid;
	uint8_t source[8];
	struct ibv_mr *source_mr;
	/* SEEN_OCTETS of private memory, registered; as much inaccessible memory follows */
	uint8_t *p;
	struct ibv_mr *mr;
	/* registered right after it; nothing may change it */
	uint8_t *neighbour;
	struct ibv_mr *neighbour_mr;
	char text[1024]; /* what was seen */
};

struct seen_row {
	const char *name; /* as in docs/memory.md */
	void (*run)(struct seen *s);
	const char *off; /* the result without promotion */
	const char *on; /* the result with promotion; NULL: the same */
};

/* The program's change to its memory. */
extern const struct seen_row seen_rows[];
extern const uint32_t seen_row_count;
/* The memory as a child sees it. */
extern const struct seen_row seen_fork_rows[];
extern const uint32_t seen_fork_row_count;

void seen_note(struct seen *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * The contents at `at`: "page N" of the region as it was at first, "zero", "peer" (written by
 * RDMA), "program" (written with seen_fill), "neighbour", "fault".
 */
void seen_look(struct seen *s, const char *what, const void *at);
void seen_fill(void *at, size_t octets);
/* An RDMA WRITE to that address of the region: "done" or "refused". */
void seen_write(struct seen *s, const char *what, const void *at);
/* Deregisters the region. Tells whether the page is "private", "shared" or "none" then. */
void seen_deregister(struct seen *s, const void *at);
/* The access of the page there, as in /proc/self/maps. */
void seen_access(struct seen *s, const char *what, const void *at);

/* Page i of what begins at p. */
uint8_t *seen_page(uint8_t *p, size_t i);
/* "0", or the error by its name. */
const char *seen_result(int value);
/* Makes the region so long, where there is room; its new address. */
uint8_t *seen_grow_elsewhere(struct seen *s, size_t to);
/* Other memory instead of the region. */
void seen_map_other(struct seen *s);

#endif
