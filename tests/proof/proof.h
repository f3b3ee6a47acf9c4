/* SPDX-License-Identifier: BSD-3-Clause */
/* The words in which proofs are written. */
#ifndef PROOF_PROOF_H
#define PROOF_PROOF_H

#include <stdint.h>

#include "__fc_builtin.h"

#define any_octets(at, length) Frama_C_make_unknown((char *)(at), length)
#define any_of(low, high)      Frama_C_unsigned_long_interval(low, high)
#define any_word()	       ((uint32_t)any_of(0, UINT32_MAX))
/* run.sh looks for it: a proof whose end is not reached proves nothing. */
#define PROVED		       Frama_C_show_each_proved(1)

#endif
