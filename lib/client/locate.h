/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where an engine may listen, best first: only $UROCE_SOCKET if it is set; otherwise the system's
 * engine, then the user's own. Attaching gives the engine access to the program's memory. So a
 * program with more rights than its caller (setuid, setgid, file capabilities) ignores the
 * environment and looks for the system's engine only.
 */
#ifndef CLIENT_LOCATE_H
#define CLIENT_LOCATE_H

#include <stdbool.h>
#include <stdint.h>

#define LOCATE_MAX  2u
#define LOCATE_PATH 108u /* octets of sun_path, unix(7) */

struct locations {
	uint32_t count;
	char path[LOCATE_MAX][LOCATE_PATH];
};

void locate_engines(struct locations *l);
/* Whether this program has more rights than its caller (AT_SECURE, getauxval(3)). */
bool locate_has_more_rights(void);

#endif
