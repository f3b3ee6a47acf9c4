/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has a file open, or has it locked. */
#ifndef APPS_DOCTOR_HOLDER_H
#define APPS_DOCTOR_HOLDER_H

#include "doctor.h"

struct holder {
	int32_t pid;
	char program[32];
};

/*
 * A process that has this file, or socket ("socket:[123]"), open. False: there is none that we may
 * see.
 */
bool holder_of_file(const struct machine *m, const char *file, struct holder *h);
/* The process that has locked the file by flock(2). */
bool holder_of_lock(const struct machine *m, const char *path, struct holder *h);
/* The name of a process; "" if there is none. */
void holder_name(const struct machine *m, struct holder *h);

#endif
