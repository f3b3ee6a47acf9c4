/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library says on stderr. A program's stderr is its own: without UROCE_LOG the library
 * speaks only when nothing else could tell the user what is wrong (client_warn). UROCE_LOG=info
 * makes it explain every refusal.
 */
#ifndef CLIENT_LOG_H
#define CLIENT_LOG_H

void client_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void client_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
