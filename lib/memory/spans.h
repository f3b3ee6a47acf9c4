/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, addresses and lengths to spans: a check, and where the octets are. */
#ifndef MEMORY_SPANS_H
#define MEMORY_SPANS_H

#include <stdint.h>

#include "memory/check.h"
#include "memory/span.h"

/* key_check, and the spans of [address, address + length) are appended to *spans. */
enum reason key_spans(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint32_t length, struct span_list *spans);

/*
 * The spans of `length` octets that begin `offset` octets into a scatter/gather list; every
 * element that is touched is checked. Zero-length elements are skipped and not checked.
 */
enum reason key_spans_of_list(const struct key_table *t, const struct work_sge *sge,
			      uint32_t num_sge, struct key_user user, uint32_t access,
			      uint64_t offset, uint32_t length, struct span_list *spans);

#endif
