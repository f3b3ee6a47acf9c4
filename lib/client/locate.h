/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where an engine may be listening, best first: $UROCE_SOCKET alone if it is set (who names an
 * engine does not want another one), else the system's engine, else the user's own. Who attaches
 * hands its memory over: a program with more rights than its caller (setuid, setgid, file
 * capabilities) lets nobody choose to whom, and looks for the system's engine alone.
 */
#ifndef CLIENT_LOCATE_H
#define CLIENT_LOCATE_H

#include <stdbool.h>
#include <stdint.h>

#define LOCATE_MAX  2u
#define LOCATE_PATH 108u /* sun_path */

struct locations {
	uint32_t count;
	char path[LOCATE_MAX][LOCATE_PATH];
};

void locate_engines(struct locations *l);
/* Whether this is such a program. */
bool locate_has_more_rights(void);

#endif
