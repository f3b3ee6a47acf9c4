/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control commands of memory: regions, windows, device memory, and imports of them and of
 * protection domains. Included at the end of command.h.
 */
#ifndef PROTOCOL_COMMAND_MEMORY_H
#define PROTOCOL_COMMAND_MEMORY_H

#include "memory/mr_backing.h"
#include "protocol/command.h"

/*
 * Names an object by its handle in the context from which `into` was imported, or in `into` itself.
 */
struct request_import {
	struct command_request h;
	uint32_t into; /* IMPORT_PD, IMPORT_DM: context; IMPORT_MR: PD */
	uint32_t handle;
};

/* Marks the handle of an imported region, which only UNIMPORT_MR accepts. */
#define MR_IMPORT_MARK (1u << 31)

/* The region stays the exporter's, and ends when the exporter's does. */
struct reply_import_mr {
	struct command_reply h;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
	uint32_t reserved;
	uint64_t length;
};

struct request_alloc_dm {
	struct command_request h;
	uint32_t context;
	uint32_t log_align; /* of its first octet, up to DM_LOG_ALIGN_MAX */
	uint64_t length;
};

#define DM_LOG_ALIGN_MAX 12u

/* Descriptors out: [0] a memfd to map, sealed against shrinking and growing. */
struct reply_dm {
	struct command_reply h;
	uint32_t handle;
	uint32_t reserved;
	uint64_t length;
};

struct request_reg_dm_mr {
	struct command_request h;
	uint32_t pd;
	uint32_t dm;
	uint64_t offset; /* of the region's first octet in the device memory */
	uint64_t length;
	uint32_t access; /* enum access_flag, with ACCESS_ZERO_BASED */
	uint32_t reserved;
};

/* PROMOTED_FILE passes one descriptor: the memfd (F_SEAL_SHRINK) into which promoted pages move. */

/*
 * For an embedded program the whole region is direct, there are no backings, and the address is
 * used as it is. ACCESS_ON_DEMAND with address 0 and length UINT64_MAX is the whole address space
 * of the client.
 */
struct request_reg_mr {
	struct command_request h;
	uint32_t pd;
	uint32_t access; /* enum access_flag */
	uint64_t address; /* in the client's address space */
	uint64_t length;
	uint64_t iova;
	uint32_t backings; /* sorted by offset, no overlaps; the rest is peer memory */
	uint32_t leaves; /* the newest LEAVE_PROMOTED when the promoted backings were named */
	struct mr_backing backing[];
};

/*
 * LEAVE_PROMOTED: the program takes its promoted memory back, and its regions stay registered.
 * After the reply the engine reaches their promoted parts as peer memory and does not access the
 * file for them. A registration with a smaller `leaves` was on its way meanwhile, so its promoted
 * backings are peer memory, too. Later ones may be in the file again.
 */
struct request_leave_promoted {
	struct command_request h;
	uint32_t leaves; /* greater than the last one; the first is 1 */
	uint32_t reserved;
};

struct reply_reg_mr {
	struct command_reply h;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
	uint32_t reserved;
};

/* ibv_rereg_mr_flags */
enum rereg_flag {
	REREG_TRANSLATION = 1,
	REREG_PD = 2,
	REREG_ACCESS = 4,
};

/*
 * The region keeps its handle and its keys. Only the fields that `flags` names are read. If the
 * command fails, the region is unchanged.
 */
struct request_rereg_mr {
	struct command_request h;
	uint32_t mr;
	uint32_t flags; /* enum rereg_flag */
	uint32_t pd;
	uint32_t access; /* enum access_flag */
	uint64_t address;
	uint64_t length;
	uint64_t iova;
	uint32_t backings; /* as request_reg_mr */
	uint32_t leaves; /* as request_reg_mr */
	struct mr_backing backing[];
};

/* ALLOC_NULL_MR creates a region in a PD that reads as zeros. Its reply has no rkey. */

/* ibv_advise_mr_advice */
enum advice {
	ADVICE_PREFETCH = 0,
	ADVICE_PREFETCH_WRITE = 1,
	ADVICE_PREFETCH_NO_FAULT = 2,
};

#define ADVISE_MAX 32u /* elements of one ADVISE_MR */

/*
 * The engine checks the elements, and answers with their addresses. The client, which owns the
 * memory, does the rest there.
 */
struct request_advise_mr {
	struct command_request h;
	uint32_t pd;
	uint32_t advice; /* enum advice */
	uint32_t num_sge; /* 1 .. ADVISE_MAX */
	uint32_t reserved;
	struct work_sge sge[ADVISE_MAX];
};

struct reply_advise_mr {
	struct command_reply h;
	uint64_t address[ADVISE_MAX]; /* of each element, in the client's address space */
};

struct request_alloc_mw {
	struct command_request h;
	uint32_t pd;
	uint32_t type; /* ibv_mw_type: 1 or 2 */
};

struct reply_alloc_mw {
	struct command_reply h;
	uint32_t handle;
	uint32_t rkey; /* its index is permanent, but a bind may change its variant */
};

static_assert(sizeof(struct request_reg_mr) + BACKING_MAX * sizeof(struct mr_backing) <=
		      LIMIT_COMMAND_BYTES,
	      "a registration fits one message");
static_assert(sizeof(struct request_rereg_mr) + BACKING_MAX * sizeof(struct mr_backing) <=
		      LIMIT_COMMAND_BYTES,
	      "so does its change");

#endif
