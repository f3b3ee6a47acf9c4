/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether standard output has what a command printed. */
#ifndef APPS_OUTPUT_H
#define APPS_OUTPUT_H

/*
 * Call it first. A standard descriptor that is closed could become a socket's otherwise, and the
 * engine would get what is printed. Writing to it fails as before.
 */
void output_keep_closed(void);
/* Writes what stdout still has. 0, or the errno of the first write that failed. */
int output_error(void);
/* Likewise, at the end of a command ("uroce stat"): its exit status, and a line on stderr. */
int output_status(const char *program);

#endif
