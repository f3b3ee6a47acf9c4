/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "transport/ticket.h"

static struct ticket ring[8];
static struct tickets tickets;

static void start(void)
{
	tickets = (struct tickets){ .mask = 7, .ring = ring };
}

TestSuite(ticket, .init = start, .timeout = 60);

Test(ticket, numbers_count_from_one_without_gaps)
{
	cr_assert_not(tickets_open(&tickets));
	for (uint64_t n = 1; n <= 100; n++) {
		cr_assert_eq(ticket_issue(&tickets, TICKET_WRITE, 7, 8, 9), n);
		cr_assert(tickets_open(&tickets));
		cr_assert_not(ticket_settled(&tickets, (uint32_t)n));
		tickets.settled = n;
		cr_assert(ticket_settled(&tickets, (uint32_t)n));
		cr_assert_not(tickets_open(&tickets));
	}
}

Test(ticket, remembers_its_packet)
{
	uint64_t n = ticket_issue(&tickets, TICKET_ATOMIC, 0xabcdef, 5, 6);
	const struct ticket *t = ticket_at(&tickets, n);

	cr_expect_eq(t->psn, 0xabcdef);
	cr_expect_eq(t->msn, 5);
	cr_expect_eq(t->owner, 6);
	cr_expect_eq(t->kind, TICKET_ATOMIC);
}

/* A READ's landing is not a copy that a peer waits for. */
Test(ticket, landings_are_not_a_peers_requests)
{
	uint64_t write;

	ticket_issue(&tickets, TICKET_LANDING, 1, 0, 0);
	cr_expect_null(ticket_oldest_request(&tickets));
	cr_expect_eq(tickets.placing, 0);
	write = ticket_issue(&tickets, TICKET_WRITE, 2, 0, 0);
	ticket_issue(&tickets, TICKET_RECEIVE, 3, 0, 0);
	ticket_issue(&tickets, TICKET_LANDING, 4, 0, 0);
	cr_expect_eq(ticket_oldest_request(&tickets), ticket_at(&tickets, write));
	cr_expect_eq(tickets.placing, write + 1);
	tickets.settled = tickets.placing;
	cr_expect_null(ticket_oldest_request(&tickets));
}

/* Completions remember 32 bits of a number. */
Test(ticket, low_bits_are_compared_across_the_wrap)
{
	static const struct {
		uint64_t settled;
		uint32_t number;
		bool is;
	} rows[] = {
		{ UINT64_C(0xffffffff), 0xffffffff, true },  { UINT64_C(0xffffffff), 0, false },
		{ UINT64_C(0x100000000), 0xffffffff, true }, { UINT64_C(0x100000000), 0, true },
		{ UINT64_C(0x100000000), 1, false },	     { UINT64_C(0x100000005), 5, true },
		{ UINT64_C(0x100000005), 6, false },
	};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		tickets.settled = rows[i].settled;
		cr_expect_eq(ticket_settled(&tickets, rows[i].number), rows[i].is, "row %u", i);
	}
}
