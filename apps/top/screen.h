/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal of `uroce top`: a page that is replaced, keys, and the end. */
#ifndef APPS_TOP_SCREEN_H
#define APPS_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* With `page` on a page of its own; call screen_close then. SIGINT and SIGTERM end screen_wait. */
void screen_open(bool page);
void screen_close(void);
/* Lines of the page. */
uint32_t screen_lines(void);
/* The next output replaces the page. */
void screen_begin(void);
/* False: the user wants the end, by a signal or by 'q'. */
bool screen_wait(double seconds);

#endif
