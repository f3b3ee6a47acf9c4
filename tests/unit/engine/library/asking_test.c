/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine's answers about itself: its line for people, its counters, and that it is not needed.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/time.h"
#include "rig/control_rig.h"
#include "engine/inside.h"

static void begin(void)
{
	snprintf(path, sizeof(path), "/tmp/uroce-asking-test-%d.sock", getpid());
	control_rig_make();
}

TestSuite(asking, .init = begin, .fini = control_rig_close, .timeout = 60);

static struct uroce_engine *make(uint32_t addresses, struct uroce_port *port,
				 uint32_t exit_when_idle)
{
	struct uroce_options o = { .size = sizeof(o),
				   .name = "asked",
				   .port = port,
				   .lcores = 1,
				   .socket_gid = -1,
				   .pool_size = 600,
				   .mtu = port != NULL ? 0 : 1500,
				   .addresses = addresses,
				   .exit_when_idle = exit_when_idle };
	struct uroce_engine *e;
	char why[256];

	for (uint32_t i = 0; i < addresses; i++)
		o.address[i] = (struct uroce_address){
			.octet = { [10] = 0xff, 0xff, 10, 9, 0, (uint8_t)(i + 1) }, .prefix = 24
		};
	e = uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(e, "%s", why);
	return e;
}

Test(asking, a_line_for_people)
{
	struct uroce_handed_options h = { .size = sizeof(h), .mac = { 2 }, .mtu = 4200 };
	struct uroce_engine *e = make(2, NULL, 0);
	struct uroce_port *port;
	char text[200];

	uroce_describe(e, text, sizeof(text));
	cr_expect_str_eq(text, "asked 10.9.0.1,10.9.0.2, this host only, IB MTU 1024");
	cr_expect_eq(uroce_destroy(e), 0);
	port = uroce_port_handed(&h, text, sizeof(text));
	cr_assert_not_null(port, "%s", text);
	e = make(1, port, 0);
	uroce_describe(e, text, sizeof(text));
	cr_expect_str_eq(text, "asked 10.9.0.1, port handed, IB MTU 4096");
	cr_expect_eq(uroce_destroy(e), 0);
}

/* With any room: text beyond it is cut, and nothing after it is written. */
Test(asking, a_line_is_cut_to_its_room)
{
	struct uroce_engine *e = make(2, NULL, 0);
	char whole[200], part[200];

	uroce_describe(e, whole, sizeof(whole));
	for (size_t room = 0; room <= strlen(whole) + 2; room++) {
		memset(part, '#', sizeof(part));
		uroce_describe(e, part, room);
		for (size_t i = room; i < sizeof(part); i++)
			cr_assert_eq(part[i], '#', "room %zu, octet %zu", room, i);
		if (room == 0)
			continue;
		cr_expect_eq(strlen(part), room <= strlen(whole) ? room - 1 : strlen(whole));
		cr_expect_eq(strncmp(part, whole, strlen(part)), 0, "'%s'", part);
	}
	cr_expect_eq(uroce_destroy(e), 0);
}

static uint64_t counter(const char *name)
{
	struct uroce_counter c[512];
	uint32_t n = uroce_counters(engine, c, 512), i = 0;

	cr_assert_leq(n, 512);
	while (i < n && strcmp(c[i].name, name) != 0)
		i++;
	cr_assert_lt(i, n, "there is no counter %s", name);
	return c[i].value;
}

/* Each number belongs to its name: of objects, of lcores, and of reasons. */
Test(asking, numbers_have_the_right_names)
{
	struct engine *inside = (struct engine *)engine;
	struct objects o;
	int fd;

	fd = attach();
	make_objects(fd, &o);
	inside->lcore[0].stats.by_reason[REASON_NO_BUFFER] = 41;
	inside->lcore[0].stats.by_reason[REASON_COUNT - 1] = 43;
	inside->lcore[0].stats.rnr_naks = 47;
	cr_expect_eq(counter("clients"), 1);
	cr_expect_eq(counter("qps"), 1);
	cr_expect_eq(counter("cqs"), 1);
	cr_expect_eq(counter("mrs"), 1);
	cr_expect_eq(counter("rnr_naks"), 47);
	cr_expect_eq(counter(reason_name(REASON_NO_BUFFER)), 41);
	cr_expect_eq(counter(reason_name(REASON_COUNT - 1)), 43);
	close(fd);
}

/* A caller with little room gets as many as fit, and learns how many there are. */
Test(asking, counters_are_cut_to_their_room)
{
	struct uroce_counter c[3] = { [2] = { "behind", 99 } };
	uint32_t n = uroce_counters(engine, NULL, 0);

	cr_expect_eq(uroce_counters(engine, c, 2), n);
	cr_expect_str_eq(c[0].name, "rx_packets");
	cr_expect_str_eq(c[1].name, "rx_octets");
	cr_expect_str_eq(c[2].name, "behind");
	cr_expect_eq(uroce_counters(NULL, c, 2), 0);
}

Test(asking, an_engine_that_is_not_needed_says_so)
{
	struct uroce_engine *soon = make(1, NULL, 1);
	nanotime until = clock_now() + ENOUGH_MS * TIME_MS;

	cr_expect_not(uroce_idle_expired(soon), "not at once");
	while (!uroce_idle_expired(soon) && clock_now() < until)
		usleep(10000);
	cr_expect(uroce_idle_expired(soon));
	cr_expect_not(uroce_idle_expired(engine), "nobody asked for it");
	cr_expect_not(uroce_idle_expired(NULL));
	cr_expect_eq(uroce_destroy(soon), 0);
}
