/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the library on stderr. A program's stderr belongs to the program, so without
 * UROCE_LOG the library writes only what the user could not learn in any other way (client_warn).
 * With UROCE_LOG=info it explains every refusal (client_info). Both keep errno. Any thread.
 */
#ifndef CLIENT_LOG_H
#define CLIENT_LOG_H

void client_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void client_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
