/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of an engine's objects (program and libraries) its porters do not need. Only porter.c uses it. */
#ifndef CLIENT_MEMORY_PORTER_CODE_H
#define CLIENT_MEMORY_PORTER_CODE_H

#include <stdbool.h>

struct mapping;

/* Looks at all mappings of this process. False: keep them all. */
bool porter_code_find(void);
/* After porter_code_find: the mapping belongs to an object that porters do not need. */
bool porter_code_is_foreign(const struct mapping *m);

#endif
