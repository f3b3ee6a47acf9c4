/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where an engine may be listening, best first: $UROCE_SOCKET alone if it is set (who names an
 * engine does not want another one), else the system's engine, else the user's own.
 */
#ifndef CLIENT_LOCATE_H
#define CLIENT_LOCATE_H

#include <stdint.h>

#define LOCATE_MAX  2u
#define LOCATE_PATH 108u /* sun_path */

struct locations {
	uint32_t count;
	char path[LOCATE_MAX][LOCATE_PATH];
};

void locate_engines(struct locations *l);

#endif
