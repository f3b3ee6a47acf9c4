/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a capture as a file for Wireshark: `uroce capture`, and `capture start` at uroced's prompt. */
#ifndef APPS_CAPTURE_FILE_H
#define APPS_CAPTURE_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "capture_session.h"

struct capture_counts {
	uint64_t frames, lost;
};

/*
 * Whether it is standard output or a FIFO. Opening a FIFO waits for its reader, and writing may: the
 * prompt of uroced does not wait.
 */
bool capture_file_is_pipe(const char *path);
/*
 * Only its owner may read it, because it has payload of other users; "-": standard output. NULL
 * with errno.
 */
FILE *capture_file_open(const char *path);
/*
 * The file, for a capture of so many seconds: after these a reader of a pipe that takes nothing for
 * 5 s ends the capture (ETIMEDOUT). Closing it closes f, unless that is standard output. NULL:
 * errno; f is still open.
 */
FILE *capture_file_bound(FILE *f, double seconds);
/* Its head. 0 or an errno; likewise below. */
int capture_file_begin(FILE *f, const struct capture_session *s, const char *program,
		       uint32_t snap);
/*
 * Some of the frames that are there, no more than `most` in all (0: all). `counts` begins at zero.
 * *more: there may be others. The caller can look between whether the capture is to end.
 */
int capture_file_take(FILE *f, struct capture_session *s, uint64_t most,
		      struct capture_counts *counts, bool *more);
/* Returns how many frames were lost; the others are in the file, which stays open. */
int capture_file_end(FILE *f, const struct capture_session *s, struct capture_counts *counts);

#endif
