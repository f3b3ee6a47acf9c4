/* SPDX-License-Identifier: BSD-3-Clause */
/* A network namespace of the test's own, which ends with its process. */
#ifndef TESTS_DRIVERS_NET_NAMESPACE_H
#define TESTS_DRIVERS_NET_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Enters a new one; skips the test with a reason if this user may not create one. */
void net_namespace_enter(void);
/* Runs `ip ...`, which must succeed. */
void ip(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint32_t index_of(const char *name);
/* Waits until condition(-1, ifindex) is `wanted`; the kernel announces carriers with a delay. */
void await(bool (*condition)(int fd, uint32_t ifindex), uint32_t ifindex, bool wanted,
	   const char *what);

#endif
