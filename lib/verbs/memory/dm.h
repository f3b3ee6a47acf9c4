/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_DM_H
#define VERBS_DM_H

#include "verbs/types.h"

/* Device memory that the command allocates or imports, and its mapping. NULL with errno. */
struct ibv_dm *dm_make(struct ibv_context *context, struct attachment *attachment,
		       enum command what, struct command_request *request, size_t request_bytes);
/* Unmaps and frees the library's part. The engine's part stays. */
void dm_forget(struct dm *dm);

#endif
