/* SPDX-License-Identifier: BSD-3-Clause */
/* `uroce sim --campaign`: a command line of its own. */
#ifndef APPS_CAMPAIGN_H
#define APPS_CAMPAIGN_H

#include <stdbool.h>

/* Whether these words ask for it. */
bool campaign_wanted(int argc, char **argv);
/* Runs it. Returns the exit status. */
int campaign_main(int argc, char **argv);

#endif
