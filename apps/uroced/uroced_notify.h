/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to the service manager (sd_notify(3)): datagrams to $NOTIFY_SOCKET. Without the
 * variable nothing is sent.
 */
#ifndef APPS_UROCED_NOTIFY_H
#define APPS_UROCED_NOTIFY_H

/* Opens the socket, before privileges are dropped. */
void notify_open(void);
/* "READY=1", "RELOADING=1", "STOPPING=1", "WATCHDOG=1" */
void notify(const char *state);
/* How often the manager wants WATCHDOG=1, in ms: half of its limit; -1: it does not want it. */
int notify_period(void);

#endif
