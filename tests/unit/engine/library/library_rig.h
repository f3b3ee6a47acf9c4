/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that know liburoce by its header alone. */
#ifndef TESTS_ENGINE_LIBRARY_RIG_H
#define TESTS_ENGINE_LIBRARY_RIG_H

#include <criterion/criterion.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <uroce.h>

/* EAL with lcores 0 (main) and 1, on any processor. */
void library_begin(void);
void library_end(void);
/* All that an engine of this host needs; adaptive, its lcore is the main one. */
struct uroce_options library_options(void);
struct uroce_engine *library_engine(void);
/* 10.9.0.HOST/24 */
struct uroce_address library_address(uint8_t host);
/* The device of this name; fails the test if there is none. */
struct ibv_context *library_open(const char *name);

#endif
