/* SPDX-License-Identifier: BSD-3-Clause */
/* The other implementations: go-back-N as Linux has it, and the rate of DCQCN. */
#include <criterion/criterion.h>

#include "dcqcn.h"
#include "goback.h"
#include "wire/opcode.h"

#define MTU	1024u
#define PACKETS 200u
#define TIMEOUT (67 * TIME_MS)

static struct goback g;
static struct packet p;

/* One message of PACKETS packets is posted; its PSNs wrap. */
static void begin(double dcqcn)
{
	const struct goback_config is = { .dest_qpn = 17,
					  .psn = 0xffffff - 50,
					  .mtu = MTU,
					  .size = PACKETS * MTU - 1,
					  .timeout = TIMEOUT,
					  .dcqcn = dcqcn };

	goback_init(&g, &is);
	goback_posted(&g);
}

static uint32_t send_all(nanotime now)
{
	uint32_t n = 0;

	while (goback_next(&g, now, &p))
		n++;
	return n;
}

static void answer(uint32_t psn, uint8_t syndrome, nanotime now)
{
	const struct packet a = { .opcode = OPCODE(SERVICE_RC, OPB_ACK),
				  .psn = psn & 0xffffff,
				  .syndrome = syndrome };
	uint64_t va;

	cr_expect_not(goback_received(&g, &a, now, &va));
}

Test(goback, keeps_128_packets_and_asks_every_64)
{
	uint32_t asked = 0, done;

	begin(0);
	for (uint32_t i = 0; i < 128; i++) {
		cr_assert(goback_next(&g, 0, &p));
		cr_expect_eq(p.psn, (0xffffff - 50 + i) & 0xffffff);
		cr_expect_eq(goback_message(&g, &p, &done), 0);
		cr_expect_eq(done, i * MTU);
		asked += p.ack_req;
	}
	cr_expect_not(goback_next(&g, 0, &p), "the window is full");
	cr_expect_eq(asked, 2);
	answer(0xffffff - 50 + 63, SYNDROME_ACK_NO_CREDITS, 10);
	cr_expect_eq(send_all(10), 64);
	cr_expect_eq(g.again, 0);
}

Test(goback, a_nak_takes_it_back_to_what_is_missing)
{
	begin(0);
	send_all(0);
	answer(0xffffff - 50 + 100, SYNDROME_NAK_SEQUENCE, 10);
	cr_assert(goback_next(&g, 10, &p));
	cr_expect_eq(p.psn, (0xffffff - 50 + 100) & 0xffffff);
	cr_expect(p.again);
	send_all(10);
	cr_expect_eq(g.again, 28, "what was sent before of 100 .. 127");
	cr_expect_eq(g.completed, 0);
	answer(0xffffff - 50 + PACKETS - 1, SYNDROME_ACK_NO_CREDITS, 20);
	cr_expect_eq(g.completed, 1);
	cr_expect_eq(goback_deadline(&g, 20), TIME_NEVER);
}

Test(goback, silence_costs_a_timeout_and_seven_are_enough)
{
	nanotime now = 0;

	begin(0);
	send_all(0);
	for (uint32_t i = 1; i <= 7; i++) {
		cr_assert_eq(goback_deadline(&g, now), now + TIMEOUT);
		goback_expired(&g, now + TIMEOUT - 1);
		cr_assert_eq(g.timeouts, i - 1, "that was early");
		now += TIMEOUT;
		goback_expired(&g, now);
		cr_assert_eq(send_all(now), 128);
	}
	cr_expect_not(g.failed);
	goback_expired(&g, now + TIMEOUT);
	cr_expect(g.failed);
	cr_expect_not(goback_has_packet(&g, now + TIMEOUT));
}

Test(goback, answers_for_what_was_never_sent_are_ignored)
{
	begin(0);
	send_all(0);
	answer(0xffffff - 50 + 128, SYNDROME_ACK_NO_CREDITS, 10);
	cr_expect_eq(g.una, g.is.psn);
}

static bool request(uint32_t psn, uint8_t base, bool ask, uint8_t ecn, nanotime now, uint64_t *va)
{
	const struct packet r = { .opcode = OPCODE(SERVICE_RC, base),
				  .psn = psn & 0xffffff,
				  .va = 5000,
				  .payload_length = MTU,
				  .ack_req = ask,
				  .ecn = ecn };

	return goback_received(&g, &r, now, va);
}

Test(goback, a_responder_takes_packets_in_order_and_names_a_gap_once)
{
	uint64_t va = 0;

	begin(0);
	g.end = g.nxt; /* it asks for nothing itself */
	cr_expect(request(g.is.psn, OPB_WRITE_FIRST, false, 0, 0, &va));
	cr_expect_eq(va, 5000);
	cr_expect(request(g.is.psn + 1, OPB_WRITE_MIDDLE, true, 0, 0, &va));
	cr_expect_eq(va, 5000 + MTU);
	cr_assert(goback_next(&g, 0, &p));
	cr_expect_eq(p.psn, (g.is.psn + 1) & 0xffffff);
	cr_expect_eq(p.syndrome, SYNDROME_ACK_NO_CREDITS);
	for (uint32_t i = 3; i < 6; i++)
		cr_expect_not(request(g.is.psn + i, OPB_WRITE_MIDDLE, false, 0, 0, &va));
	cr_assert(goback_next(&g, 0, &p));
	cr_expect_eq(p.psn, (g.is.psn + 2) & 0xffffff);
	cr_expect_eq(p.syndrome, SYNDROME_NAK_SEQUENCE);
	cr_expect_not(goback_next(&g, 0, &p), "one NAK is enough");
	cr_expect_not(request(g.is.psn, OPB_WRITE_FIRST, true, 0, 0, &va), "a duplicate");
	cr_assert(goback_next(&g, 0, &p));
	cr_expect_eq(p.psn, (g.is.psn + 1) & 0xffffff);
}

Test(goback, marks_are_told_to_the_sender_every_50_us)
{
	uint64_t va;
	uint32_t psn;

	begin(100e9);
	g.end = g.nxt;
	psn = g.is.psn;
	for (nanotime now = 0; now < 200 * TIME_US; now += TIME_US) {
		request(psn++, OPB_WRITE_MIDDLE, false, 3, now, &va);
		while (goback_next(&g, now, &p))
			cr_expect_eq(p.opcode, OPCODE_CNP);
	}
	cr_expect_eq(g.cnps, 4);
	request(psn, OPB_WRITE_MIDDLE, false, 2, TIME_MS, &va);
	cr_expect_not(goback_next(&g, TIME_MS, &p), "that was no mark");
}

Test(dcqcn, a_notification_cuts_and_time_restores)
{
	struct dcqcn d;
	double least;

	dcqcn_init(&d, 100e9);
	cr_expect_float_eq(dcqcn_rate(&d, TIME_S), 100e9, 1);
	dcqcn_notified(&d, TIME_S);
	cr_expect_float_eq(dcqcn_rate(&d, TIME_S), 50e9, 1, "alpha begins with 1");
	least = dcqcn_rate(&d, TIME_S + 54 * TIME_US);
	cr_expect_float_eq(least, 50e9, 1);
	/* half of the missing rate, every 55 us */
	cr_expect_float_eq(dcqcn_rate(&d, TIME_S + 55 * TIME_US), 75e9, 1);
	cr_expect_float_eq(dcqcn_rate(&d, TIME_S + 110 * TIME_US), 87.5e9, 1);
	cr_expect_float_eq(dcqcn_rate(&d, 2 * TIME_S), 100e9, 1);
	cr_expect_lt(d.alpha, 0.01, "it has decayed");
	dcqcn_notified(&d, 2 * TIME_S);
	cr_expect_gt(dcqcn_rate(&d, 2 * TIME_S), 99e9, "so the next cut is small");
}

Test(dcqcn, a_flood_of_notifications_leaves_a_rate)
{
	struct dcqcn d;

	dcqcn_init(&d, 100e9);
	for (uint32_t i = 0; i < 10000; i++)
		dcqcn_notified(&d, i);
	cr_expect_float_eq(dcqcn_rate(&d, 10000), 40e6, 1);
}

Test(dcqcn, sends_at_its_rate)
{
	nanotime now = 0;
	uint32_t n = 0;

	begin(8e9); /* an octet takes a nanosecond */
	while (n < 100 && now < TIME_MS) {
		if (goback_next(&g, now, &p))
			n++;
		else
			now = goback_deadline(&g, now);
	}
	cr_expect_eq(n, 100);
	cr_expect_float_eq((double)now, 99 * (MTU + 80.0), 200);
}
