/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rest of files that the engine mapped for regions. Packets filled their holes, and the kernel
 * charged these pages to the engine; they stay when the last region goes, as long as some program
 * keeps the file open. So the user stays charged for them until the file itself is gone. Linux
 * tells when (inotify). The watch keeps neither the file nor its pages.
 */
#ifndef CONTROL_LEFT_H
#define CONTROL_LEFT_H

#include <stdint.h>

#include "control/share/user.h"

struct engine;
struct left_file;

/* Without inotify nothing stays charged. */
void left_open(struct engine *e);
/* After the last client. */
void left_close(struct engine *e);

/*
 * The record of that file for the user: the same one as long as the file exists. NULL: the file
 * cannot be watched, or the user has reached the limit of records, so it must not be mapped.
 */
struct left_file *left_find(struct engine *e, struct user *u, int fd);
/* Takes the rest off the user's charge, and returns how much it was. */
uint64_t left_take(struct engine *e, struct left_file *f);
/* Charges the user for this much more. It is never refused: the user had it already. */
void left_keep(struct engine *e, struct left_file *f, uint64_t octets);

#endif
