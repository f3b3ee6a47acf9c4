/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "base/bits.h"
#include "memory/key.h"

#define PD   3u
#define USER ((struct key_user){ PD, 5 })
#define RW   (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE)

static struct key_table table;
static void *table_memory;

static void make_table(uint32_t slots, uint8_t seed)
{
	uint8_t random[16];

	for (uint32_t i = 0; i < 16; i++)
		random[i] = (uint8_t)(seed * 31 + i * 89);
	table_memory = malloc(key_table_size(slots));
	key_table_init(&table, table_memory, slots, random);
}

static void drop_table(void)
{
	free(table_memory);
	table_memory = NULL;
}

static struct region *make_region(uint32_t pieces, uint64_t iova, uint64_t length, uint32_t access)
{
	struct region *r = calloc(1, sizeof(struct region) + pieces * sizeof(struct region_piece));

	r->key = key_allocate(&table, 0x42);
	r->pd = PD;
	r->access = access;
	r->client = 9;
	r->iova = iova;
	r->length = length;
	r->pieces = pieces;
	key_publish(&table, r->key, r);
	return r;
}

TestSuite(key, .fini = drop_table, .timeout = 400);

/* All 2^24 slots: every index once, and each found again. */
Test(key, permutation_is_a_bijection)
{
	enum {
		ALL = 1 << 24
	};
	uint8_t *seen = calloc(ALL, 1);
	static struct region r;
	uint32_t repeated = 0, zero = 0;

	make_table(ALL, 1);
	for (uint32_t i = 0; i < ALL; i++) {
		uint32_t key = key_allocate(&table, 1);

		zero += key == 0;
		repeated += seen[key >> 8]++ != 0;
	}
	cr_assert_eq(zero, 0);
	cr_assert_eq(repeated, 0, "%u indices came twice", repeated);
	cr_assert_eq(key_allocate(&table, 1), 0, "the table is full");
	for (uint32_t i = 0; i < ALL; i += 4099) {
		r.key = i << 8 | 1;
		key_publish(&table, r.key, &r);
		cr_assert_eq(key_find(&table, r.key), &r);
		cr_assert_eq(key_withdraw(&table, r.key), &r);
		cr_assert_null(key_find(&table, r.key));
	}
	free(seen);
}

/* hostile H-33: keys are guessed; H-56: numbers that tell of the next. */
Test(key, neighbours_tell_nothing_of_each_other)
{
	uint32_t small = 0, last = 0;

	make_table(10000, 7);
	for (uint32_t i = 0; i < 10000; i++) {
		uint32_t index = key_allocate(&table, 0) >> 8;
		uint32_t step = index > last ? index - last : last - index;

		small += step < 1 << 16;
		last = index;
	}
	/* Of random steps in 2^24 fewer than 1 in 100 are so small. */
	cr_assert(small < 200, "%u of 10000 steps are small", small);
}

/* hostile H-33: keys are guessed. */
Test(key, no_key_is_zero_and_none_is_lost)
{
	for (uint8_t seed = 0; seed < 16; seed++) {
		uint32_t got = 0;

		make_table(1 << 16, seed);
		for (uint32_t key; (key = key_allocate(&table, 0)) != 0;)
			got++;
		cr_assert(got == 1 << 16 || got == (1 << 16) - 1);
		drop_table();
	}
	make_table(1, 0);
}

Test(key, a_slot_is_reused_last)
{
	uint32_t first, key;

	make_table(100, 3);
	first = key_allocate(&table, 1);
	key_free(&table, first);
	for (uint32_t i = 0; i < 99; i++) {
		key = key_allocate(&table, 2);
		cr_assert_neq(key >> 8, first >> 8, "after %u allocations", i);
	}
	key = key_allocate(&table, 2);
	cr_assert_eq(key >> 8, first >> 8);
	cr_assert_eq(key_allocate(&table, 2), 0);
}

/* hostile H-34: a key of another domain, of nobody, of another variant. */
Test(key, check_in_order)
{
	struct region *r;
	const struct region *found = NULL;
	uint32_t unused;
	const uint64_t base = 0x10000, length = 0x1000;

	make_table(1000, 5);
	r = make_region(1, base, length, RW);
	unused = key_allocate(&table, 1);
	cr_assert_eq(key_check(&table, r->key, USER, ACCESS_REMOTE_WRITE, base, length, &found),
		     REASON_NONE);
	cr_assert_eq(found, r);
#define CHECK(key, pd, access, address, len) \
	key_check(&table, key, (struct key_user){ pd, 5 }, access, address, len, &found)
	/* Each row is wrong in all that follows it, too: the first reason counts. */
	cr_expect_eq(CHECK(r->key ^ 1, PD + 1, ACCESS_REMOTE_READ, 0, 1), REASON_KEY_UNKNOWN);
	cr_expect_eq(CHECK(unused, PD, 0, base, 1), REASON_KEY_UNKNOWN, "allocated, not published");
	cr_expect_eq(CHECK(0, PD, 0, base, 1), REASON_KEY_UNKNOWN);
	cr_expect_eq(CHECK(UINT32_MAX, PD, 0, base, 1), REASON_KEY_UNKNOWN);
	cr_expect_eq(CHECK(r->key, PD + 1, ACCESS_REMOTE_READ, 0, 1), REASON_KEY_PD);
	cr_expect_eq(CHECK(r->key, PD, ACCESS_REMOTE_READ, 0, 1), REASON_KEY_ACCESS);
	cr_expect_eq(CHECK(r->key, PD, ACCESS_REMOTE_ATOMIC | ACCESS_LOCAL_WRITE, 0, 1),
		     REASON_KEY_ACCESS);
	static const struct {
		uint64_t address, length;
		enum reason why;
	} ranges[] = {
		{ 0x10000, 1, REASON_NONE },
		{ 0x10fff, 1, REASON_NONE },
		{ 0xffff, 1, REASON_KEY_RANGE },
		{ 0x11000, 1, REASON_KEY_RANGE },
		{ 0x11000, 0, REASON_NONE },
		{ 0x10000, 0x1001, REASON_KEY_RANGE },
		{ 0x10001, 0x1000, REASON_KEY_RANGE },
		{ 0xfffffffffffffc00, 0x400, REASON_KEY_RANGE },
		{ 0xfffffffffffffc00, 0x10800, REASON_KEY_RANGE },
		{ 0x10800, UINT64_MAX, REASON_KEY_RANGE },
		{ 0x10800, UINT64_MAX - 0x10800 + 1, REASON_KEY_RANGE },
		{ 0, UINT64_MAX, REASON_KEY_RANGE },
	};
	for (uint32_t i = 0; i < ARRAY_SIZE(ranges); i++)
		cr_expect_eq(CHECK(r->key, PD, 0, ranges[i].address, ranges[i].length),
			     ranges[i].why, "row %u", i);
	free(r);
}

/* hostile H-16: a range that goes round; H-155: regions of many gigabytes. */
Test(key, region_at_the_end_of_the_address_space)
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

Test(key, a_withdrawn_region_is_gone_at_once)
{
	struct region *r;
	const struct region *found;

	make_table(10, 5);
	r = make_region(1, 0, 64, RW);
	cr_assert_eq(key_withdraw(&table, r->key), r);
	cr_assert_eq(key_check(&table, r->key, USER, 0, 0, 1, &found), REASON_KEY_UNKNOWN);
	cr_assert_null(key_withdraw(&table, r->key));
	key_free(&table, r->key);
	free(r);
}

/*
 * Zero-based: the address is an offset. Pieces: peer, direct, peer.
 * hostile H-100: pieces of any length.
 */
Test(key, spans_follow_the_pieces)
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
Test(key, many_pieces)
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
Test(key, spans_of_a_list)
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

/* protocol-map 156, 157, 160: the window's range and rights count, the parent's pieces are used. */
static struct region *make_window(struct region *parent, uint64_t offset, uint64_t length,
				  uint32_t access, uint32_t qpn)
{
	struct region *w = make_region(0, parent->iova + offset, length, access);

	w->kind = REGION_WINDOW;
	w->window_qpn = qpn;
	w->parent = parent;
	w->parent_offset = offset;
	return w;
}

Test(key, a_window_is_a_part_of_its_region)
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

Test(key, what_a_window_refuses)
{
	struct key_user other_qp = { .pd = PD, .qpn = 78 }, owner = { .pd = PD, .qpn = 77 };
	struct region *r, *w, *zero;
	const struct region *found;

	make_table(8, 11);
	r = make_region(1, 0x10000, 8192, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND | ACCESS_REMOTE_READ);
	w = make_window(r, 4096, 100, ACCESS_REMOTE_WRITE, 77);
	const struct {
		const char *what;
		struct key_user user;
		uint32_t access;
		uint64_t address, length;
		enum reason why;
	} cases[] = {
		{ "all of it", owner, ACCESS_REMOTE_WRITE, 0x11000, 100, REASON_NONE },
		{ "H-35: in the region, behind the window", owner, ACCESS_REMOTE_WRITE, 0x11000,
		  101, REASON_KEY_RANGE },
		{ "H-35: in the region, before the window", owner, ACCESS_REMOTE_WRITE, 0x10fff, 1,
		  REASON_KEY_RANGE },
		{ "what the region allows and the window does not", owner, ACCESS_REMOTE_READ,
		  0x11000, 1, REASON_KEY_ACCESS },
		{ "H-36: another queue pair", other_qp, ACCESS_REMOTE_WRITE, 0x11000, 1,
		  REASON_KEY_ACCESS },
		{ "H-34: another PD",
		  { .pd = PD + 1, .qpn = 77 },
		  ACCESS_REMOTE_WRITE,
		  0x11000,
		  1,
		  REASON_KEY_PD },
		{ "as a local key", owner, 0, 0x11000, 1, REASON_KEY_ACCESS },
		{ "as a local key, writing", owner, ACCESS_LOCAL_WRITE, 0x11000, 1,
		  REASON_KEY_ACCESS },
		{ "around the end", owner, ACCESS_REMOTE_WRITE, 0x11000, UINT64_MAX,
		  REASON_KEY_RANGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(key_check(&table, w->key, cases[i].user, cases[i].access,
				       cases[i].address, cases[i].length, &found),
			     cases[i].why, "%s", cases[i].what);
	cr_expect_eq(key_check_invalidate(&table, w->key, owner), REASON_NONE);
	cr_expect_eq(key_check_invalidate(&table, w->key, other_qp), REASON_KEY_ACCESS);
	cr_expect_eq(key_check_invalidate(&table, r->key, owner), REASON_KEY_ACCESS, "a region");
	cr_expect_eq(key_check_invalidate(&table, w->key ^ 1, owner), REASON_KEY_UNKNOWN);
	cr_expect_eq(key_check_invalidate(&table, 0, owner), REASON_KEY_UNKNOWN);
	/* zero-based: addresses are offsets into the window */
	zero = make_window(r, 8000, 192, ACCESS_REMOTE_WRITE, 0);
	zero->iova = 0;
	cr_expect_eq(key_check(&table, zero->key, other_qp, ACCESS_REMOTE_WRITE, 0, 192, &found),
		     REASON_NONE);
	cr_expect_eq(key_check(&table, zero->key, owner, ACCESS_REMOTE_WRITE, 1, 192, &found),
		     REASON_KEY_RANGE);
	cr_expect_eq(key_check_invalidate(&table, zero->key, owner), REASON_KEY_ACCESS, "type 1");
	free(zero);
	free(w);
	free(r);
}

Test(key, the_null_region_is_nobodys)
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
