/* SPDX-License-Identifier: BSD-3-Clause */
/* `uroce sim --scenario`: a command line of its own. */
#ifndef APPS_SCENARIO_H
#define APPS_SCENARIO_H

#include <stdbool.h>

/* Whether these words ask for it. */
bool scenario_wanted(int argc, char **argv);
/* Runs it. Returns the exit status. */
int scenario_main(int argc, char **argv);

#endif
