/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "rig.h"

TestSuite(spans, .fini = drop_table, .timeout = 400);

/* hostile H-16: a range that goes round; H-155: regions of many gigabytes. */
Test(spans, region_at_the_end_of_the_address_space)
{
	struct region *r;
	struct span_list l;

	make_table(10, 5);
	r = make_region(1, UINT64_MAX - 0xfff, 0x1000, RW);
	r->piece[0].direct = (void *)0x1000;
	span_list_clear(&l);
	cr_expect_eq(key_spans(&table, r->key, USER, 0, UINT64_MAX, 1, &l), REASON_NONE);
	cr_expect_eq(key_spans(&table, r->key, USER, 0, UINT64_MAX, 2, &l), REASON_KEY_RANGE);
	cr_expect_eq(key_spans(&table, r->key, USER, 0, 0, 1, &l), REASON_KEY_RANGE);
	cr_expect_eq(l.count, 1);
	free(r);
}

/*
 * Zero-based: the address is an offset. Pieces: peer, direct, peer.
 * hostile H-100: pieces of any length.
 */
Test(spans, follow_the_pieces)
{
	static uint8_t mapped[0x2000];
	struct region *r;
	struct span_list l;

	make_table(10, 5);
	r = make_region(3, 0, 0x4000, RW | ACCESS_ZERO_BASED);
	r->piece[0] = (struct region_piece){ 0, NULL, 0x7000 };
	r->piece[1] = (struct region_piece){ 0x1000, mapped, 0x8000 };
	r->piece[2] = (struct region_piece){ 0x3000, NULL, 0xa000 };

	span_list_clear(&l);
	cr_assert_eq(key_spans(&table, r->key, USER, 0, 0x1000, 0x2000, &l), REASON_NONE);
	cr_assert_eq(l.count, 1);
	cr_assert_not(l.has_peer);
	cr_assert_eq(l.span[0].direct, mapped);
	cr_assert_eq(l.span[0].length, 0x2000);

	cr_assert_eq(key_spans(&table, r->key, USER, 0, 0xfff, 0x2002, &l), REASON_NONE);
	cr_assert_eq(l.count, 4);
	cr_assert(l.has_peer);
	cr_assert_eq(l.length, 0x2000 + 0x2002);
	cr_assert_null(l.span[1].direct);
	cr_assert_eq(l.span[1].peer_address, 0x7fff);
	cr_assert_eq(l.span[1].length, 1);
	cr_assert_eq(l.span[1].client, 9);
	cr_assert_eq(l.span[2].direct, mapped);
	cr_assert_eq(l.span[2].length, 0x2000);
	cr_assert_eq(l.span[3].peer_address, 0xa000);
	cr_assert_eq(l.span[3].length, 1);
	free(r);
}

/*
 * 300 page-sized pieces: found by halving, and never more spans than a list holds.
 * hostile H-100: pieces of any length.
 */
Test(spans, many_pieces)
{
	enum {
		PIECES = 300,
		PAGE = 4096
	};
	struct region *r;
	struct span_list l;

	make_table(10, 5);
	r = make_region(PIECES, 0x100000, PIECES * PAGE, RW);
	for (uint32_t i = 0; i < PIECES; i++)
		r->piece[i] =
			(struct region_piece){ i * PAGE, NULL, UINT64_C(0x1000000) * (i + 1) };
	for (uint32_t i = 0; i < PIECES; i++) {
		span_list_clear(&l);
		cr_assert_eq(key_spans(&table, r->key, USER, 0, 0x100000 + i * PAGE + 5, 1, &l), 0);
		cr_assert_eq(l.span[0].peer_address, UINT64_C(0x1000000) * (i + 1) + 5);
	}
	span_list_clear(&l);
	cr_assert_eq(key_spans(&table, r->key, USER, 0, 0x100000, LIMIT_SPANS * PAGE, &l),
		     REASON_NONE);
	cr_assert_eq(l.count, LIMIT_SPANS);
	span_list_clear(&l);
	cr_assert_eq(key_spans(&table, r->key, USER, 0, 0x100000, LIMIT_SPANS * PAGE + 1, &l),
		     REASON_MEMORY_FAULT);
	cr_assert_eq(l.count, LIMIT_SPANS);
	free(r);
}

/* hostile H-153: the most elements there may be. */
Test(spans, of_a_list)
{
	static uint8_t mapped[4096];
	struct region *r;
	struct span_list l;
	struct work_sge sge[5];

	make_table(10, 5);
	r = make_region(1, 0x1000, 4096, ACCESS_LOCAL_WRITE);
	r->piece[0].direct = mapped;
	sge[0] = (struct work_sge){ 0x1000, 10, r->key };
	sge[1] = (struct work_sge){ 0xdead, 0, 0xdead }; /* empty: not looked at */
	sge[2] = (struct work_sge){ 0x1100, 20, r->key };
	sge[3] = (struct work_sge){ 0x1200, 30, r->key + 1 }; /* a wrong key, if it is touched */
	sge[4] = (struct work_sge){ 0x1300, 40, r->key };
#define SPANS(offset, length) \
	key_spans_of_list(&table, sge, 5, USER, ACCESS_LOCAL_WRITE, offset, length, &l)
	span_list_clear(&l);
	cr_assert_eq(SPANS(5, 20), REASON_NONE);
	cr_assert_eq(l.count, 2);
	cr_assert_eq(l.span[0].direct, mapped + 5);
	cr_assert_eq(l.span[0].length, 5);
	cr_assert_eq(l.span[1].direct, mapped + 0x100);
	cr_assert_eq(l.span[1].length, 15);
	span_list_clear(&l);
	cr_assert_eq(SPANS(10, 20), REASON_NONE, "from the end of one to the end of another");
	cr_assert_eq(l.count, 1);
	cr_assert_eq(SPANS(10, 21), REASON_KEY_UNKNOWN, "the wrong key is touched");
	span_list_clear(&l);
	cr_assert_eq(SPANS(60, 40), REASON_NONE);
	cr_assert_eq(l.span[0].direct, mapped + 0x300);
	cr_assert_eq(SPANS(60, 41), REASON_KEY_RANGE, "longer than the list");
	cr_assert_eq(SPANS(101, 1), REASON_KEY_RANGE, "behind the list");
	cr_assert_eq(SPANS(UINT64_MAX, 1), REASON_KEY_RANGE);
	span_list_clear(&l);
	cr_assert_eq(SPANS(30, 0), REASON_NONE, "nothing is touched");
	cr_assert_eq(l.count, 0);
	r->access = 0;
	cr_assert_eq(SPANS(0, 1), REASON_KEY_ACCESS);
	free(r);
}

Test(spans, a_window_is_a_part_of_its_region)
{
	static uint8_t direct[4096];
	struct span_list spans;
	struct region *r, *w;

	make_table(8, 9);
	r = make_region(2, 0x10000, 8192, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
	r->piece[0] = (struct region_piece){ 0, direct, 0x500000 };
	r->piece[1] = (struct region_piece){ 4096, NULL, 0x501000 };
	w = make_window(r, 4000, 200, ACCESS_REMOTE_WRITE, 0);
	span_list_clear(&spans);
	cr_assert_eq(
		key_spans(&table, w->key, USER, ACCESS_REMOTE_WRITE, 0x10000 + 4000, 200, &spans),
		REASON_NONE);
	cr_assert_eq(spans.count, 2);
	cr_expect_eq(spans.span[0].direct, direct + 4000);
	cr_expect_eq(spans.span[0].length, 96);
	cr_expect_null(spans.span[1].direct);
	cr_expect_eq(spans.span[1].peer_address, 0x501000);
	cr_expect_eq(spans.span[1].client, 9);
	cr_expect(spans.has_peer);
	free(w);
	free(r);
}

Test(spans, the_null_region_is_nobodys)
{
	struct span_list spans;
	struct region *r;
	const struct region *found;

	make_table(4, 13);
	r = make_region(0, 0, UINT64_MAX, ACCESS_LOCAL_WRITE);
	r->kind = REGION_NULL;
	span_list_clear(&spans);
	cr_assert_eq(key_spans(&table, r->key, USER, 0, UINT64_C(1) << 60, 4096, &spans),
		     REASON_NONE);
	cr_assert_eq(key_spans(&table, r->key, USER, ACCESS_LOCAL_WRITE, 1, 10, &spans),
		     REASON_NONE);
	cr_assert_eq(key_spans(&table, r->key, USER, 0, 1, 0, &spans), REASON_NONE);
	cr_expect_eq(spans.count, 2, "an empty range has no span");
	cr_expect_eq(spans.length, 4106);
	cr_expect(spans.has_peer, "it is not all direct");
	for (uint32_t i = 0; i < spans.count; i++) {
		cr_expect_null(spans.span[i].direct);
		cr_expect_eq(spans.span[i].client, SPAN_NOBODY);
	}
	spans.count = LIMIT_SPANS;
	cr_expect_eq(key_spans(&table, r->key, USER, 0, 1, 1, &spans), REASON_MEMORY_FAULT);
	cr_expect_eq(key_check(&table, r->key, USER, ACCESS_REMOTE_READ, 0, 1, &found),
		     REASON_KEY_ACCESS);
	free(r);
}
