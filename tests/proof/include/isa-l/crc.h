/* SPDX-License-Identifier: BSD-3-Clause */
/* What ISA-L promises, for proofs: it reads these octets, and the sum may be any. */
#ifndef PROOF_ISAL_CRC_H
#define PROOF_ISAL_CRC_H

#include <stdint.h>

/*@
  requires \valid_read((uint8_t *)buf + (0 .. (integer)len - 1));
  assigns \result \from init, ((uint8_t *)buf)[0 .. (integer)len - 1], len;
*/
uint32_t crc32_gzip_refl(uint32_t init, const unsigned char *buf, uint64_t len);

#endif
