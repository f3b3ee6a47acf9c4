/* SPDX-License-Identifier: BSD-3-Clause */
/* A porter's report: one message of a program, with the descriptors that are harmless. */
#ifndef CONTROL_CONNECTION_REPORT_H
#define CONTROL_CONNECTION_REPORT_H

#include <stdbool.h>

#include "control/call.h"
#include "drivers/client_memory/porter.h"

/*
 * Receives a report, and fills in what it says of the message: its length, its descriptors, and the
 * program's memory and file. The caller closes the descriptors. False: there is no report, so the
 * porter has ended or is about to.
 */
bool report_receive(int channel, struct porter_report *r, struct call *call);

#endif
