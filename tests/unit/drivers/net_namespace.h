/* SPDX-License-Identifier: BSD-3-Clause */
/* A network namespace that a test has for itself: what it makes there goes with its process. */
#ifndef TESTS_DRIVERS_NET_NAMESPACE_H
#define TESTS_DRIVERS_NET_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Enters a new one; the test is skipped, with the reason, where this user may have none. */
void net_namespace_enter(void);
/* `ip ...`, which must succeed. */
void ip(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint32_t index_of(const char *name);
/* Until condition(-1, ifindex) is `wanted`; the kernel tells of carriers when it has the time. */
void await(bool (*condition)(int fd, uint32_t ifindex), uint32_t ifindex, bool wanted,
	   const char *what);

#endif
