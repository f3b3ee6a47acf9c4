/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the stories' vocabulary. Stories include only story.h. */
#ifndef STORY_SIDES_H
#define STORY_SIDES_H

#include "story.h"

extern struct story_options story_chosen; /* those of story_begin */

struct gid story_gid(const struct side *s);
/* enum qp_type of its queue pair. */
uint32_t story_type(const struct side *s);
/* The core's clock runs one second ahead of the story's. */
nanotime story_clock(void);

#endif
