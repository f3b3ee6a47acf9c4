/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands in the arena (queue/command_slot.h), of programs that write there what they please. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "queue/command_slot.h"
#include "rig/control_rig.h"

TestSuite(slots, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

struct program {
	int fd, bell;
	uint8_t *arena;
	struct command_slots *slots;
	struct command_slot *slot; /* the first one */
};

static struct program begin(void)
{
	struct reply_hello hello;
	struct program p;
	int arena;

	p.fd = attach_keeping_all(&hello, &arena, &p.bell);
	p.arena = mmap(NULL, hello.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena, 0);
	cr_assert_neq(p.arena, MAP_FAILED);
	close(arena);
	p.slots = (void *)(p.arena + hello.slots_offset);
	p.slot = &p.slots->slot[0];
	return p;
}

static void end(struct program *p)
{
	munmap(p->arena, LIMIT_ARENA_BYTES);
	close(p->bell);
	close(p->fd);
}

static void ring(const struct program *p)
{
	const uint64_t one = 1;

	cr_assert_eq(write(p->bell, &one, sizeof(one)), (ssize_t)sizeof(one));
}

static struct request_handle handle_request(enum command what, uint32_t handle)
{
	struct request_handle q = { .handle = handle };

	message_address(&q.h, what, sizeof(q), 1);
	return q;
}

static void put(struct program *p, uint32_t slot, const struct command_request *q,
		enum slot_state state)
{
	slot_fill(&p->slots->slot[slot], q, q->length, state);
}

/* Waits until the slot has this state. */
static void await_state(const struct command_slot *slot, enum slot_state wanted)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	for (uint32_t ms = 0; ms < ENOUGH_MS && slot_state(slot) != wanted; ms++)
		nanosleep(&nap, NULL);
	cr_assert_eq(slot_state(slot), wanted, "the slot's state is %u, and %u did not come",
		     slot_state(slot), wanted);
}

static int error_in(struct command_slot *slot, struct reply_handle *r)
{
	size_t n;

	await_state(slot, SLOT_REPLY);
	memset(r, 0, sizeof(*r));
	n = slot_reply(slot, r, sizeof(*r));
	return message_judge(&r->h, n, sizeof(*r), COMMAND_ALLOC_PD);
}

Test(slots, a_command_is_answered_in_its_slot)
{
	struct program p = begin();
	struct request_handle q = handle_request(COMMAND_ALLOC_PD, open_context(p.fd));
	struct reply_handle r;

	for (uint32_t i = 0; i < 2 * LIMIT_COMMAND_SLOTS; i++) {
		struct command_slot *slot = &p.slots->slot[i % LIMIT_COMMAND_SLOTS];

		put(&p, i % LIMIT_COMMAND_SLOTS, &q.h, SLOT_AWAITED);
		ring(&p);
		cr_assert_eq(error_in(slot, &r), 0);
		cr_expect_neq(r.handle, 0);
		cr_expect_eq(r.h.sequence, 1);
		cr_expect_eq(slot_state(slot), SLOT_FREE);
		cr_expect_eq(ask_handle(p.fd, COMMAND_DEALLOC_PD, r.handle, NULL), 0);
	}
	q.handle = 12345;
	put(&p, 0, &q.h, SLOT_AWAITED);
	ring(&p);
	cr_expect_eq(error_in(p.slot, &r), EINVAL);
	cr_expect_str_neq(r.h.why, "");
	end(&p);
}

Test(slots, posted_commands_are_executed_in_order_and_not_answered)
{
	struct program p = begin();
	uint32_t context = open_context(p.fd);
	struct request_handle q = handle_request(COMMAND_ALLOC_PD, context);
	struct reply_handle r, before;

	put(&p, 0, &q.h, SLOT_AWAITED);
	ring(&p);
	cr_assert_eq(error_in(p.slot, &before), 0);
	q = handle_request(COMMAND_DEALLOC_PD, before.handle);
	put(&p, 1, &q.h, SLOT_POSTED);
	put(&p, 2, &q.h, SLOT_POSTED); /* nobody learns that it fails */
	put(&p, 3, &q.h, SLOT_AWAITED);
	ring(&p);
	cr_expect_eq(error_in(&p.slots->slot[3], &r), EINVAL, "it was deallocated before");
	cr_expect_eq(slot_state(&p.slots->slot[1]), SLOT_FREE);
	cr_expect_eq(slot_state(&p.slots->slot[2]), SLOT_FREE);
	end(&p);
}

/* More than LIMIT_COMMANDS_IN_A_ROW, announced once. */
Test(slots, all_that_wait_are_executed)
{
	struct program p = begin();
	struct request_handle q = handle_request(COMMAND_ALLOC_PD, open_context(p.fd));

	static_assert(LIMIT_COMMAND_SLOTS > LIMIT_COMMANDS_IN_A_ROW, "a row ends before");
	for (uint32_t i = 0; i < LIMIT_COMMAND_SLOTS; i++)
		put(&p, i, &q.h, i % 2 == 0 ? SLOT_POSTED : SLOT_AWAITED);
	ring(&p);
	for (uint32_t i = 0; i < LIMIT_COMMAND_SLOTS; i++)
		await_state(&p.slots->slot[i], i % 2 == 0 ? SLOT_FREE : SLOT_REPLY);
	end(&p);
}

static struct request_empty open_request(void)
{
	struct request_empty q = { 0 };

	message_address(&q.h, COMMAND_OPEN_CONTEXT, sizeof(q), 7);
	return q;
}

/* The reply of OPEN_CONTEXT has descriptors. The next command waits until they are received. */
Test(slots, descriptors_come_over_the_socket)
{
	struct program p = begin();
	struct request_empty q = open_request();
	struct carrier_descriptors out = { 0 };
	struct reply_context r;

	put(&p, 0, &q.h, SLOT_AWAITED);
	put(&p, 1, &q.h, SLOT_AWAITED);
	ring(&p);
	await_state(p.slot, SLOT_ON_SOCKET);
	expect_serving(); /* the control thread is done with this program */
	cr_expect_eq(slot_state(&p.slots->slot[1]), SLOT_AWAITED);
	for (uint32_t i = 0; i < 2; i++) {
		struct pollfd readable = { .fd = p.fd, .events = POLLIN };

		cr_assert_eq(message_receive(p.fd, COMMAND_OPEN_CONTEXT, 7, ENOUGH_MS, &r.h,
					     sizeof(r), &out),
			     0);
		cr_assert_eq(out.count, 2);
		close(out.fd[0]);
		close(out.fd[1]);
		if (i == 0) {
			await_state(&p.slots->slot[1], SLOT_ON_SOCKET);
			cr_expect_eq(poll(&readable, 1, ENOUGH_MS), 1);
		}
	}
	end(&p);
}

static void expect_end(struct program *p)
{
	char octet;

	await_state(&p->slots->slot[LIMIT_COMMAND_SLOTS - 1], SLOT_ENDED);
	cr_expect_eq(recv(p->fd, &octet, 1, 0), 0, "the connection stays");
	expect_counts(0, 0, 0, 0);
	expect_serving();
	end(p);
}

/* hostile H-119 */
Test(slots, a_request_longer_than_a_slot_ends_the_connection)
{
	struct program p = begin();
	struct request_handle q = handle_request(COMMAND_ALLOC_PD, 1);

	put(&p, 0, &q.h, SLOT_AWAITED);
	__atomic_store_n(&p.slot->octets, LIMIT_COMMAND_BYTES + 1, __ATOMIC_RELAXED);
	ring(&p);
	expect_end(&p);
}

/* hostile H-119 */
Test(slots, another_protocol_ends_the_connection)
{
	struct program p = begin();
	struct request_handle q = handle_request(COMMAND_ALLOC_PD, 1);

	q.h.magic++;
	put(&p, 0, &q.h, SLOT_AWAITED);
	/* a thread of the program waits for this one, which is never executed */
	put(&p, LIMIT_COMMAND_SLOTS - 1, &q.h, SLOT_AWAITED);
	ring(&p);
	expect_end(&p);
}

/* The engine refuses it, or ends the connection. */
static bool is_refused(struct program *p)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	uint32_t state = SLOT_AWAITED;
	struct reply_handle r;

	for (uint32_t ms = 0; ms < ENOUGH_MS && state == SLOT_AWAITED; ms++) {
		nanosleep(&nap, NULL);
		state = slot_state(p->slot);
	}
	return state == SLOT_ENDED || (state == SLOT_REPLY && error_in(p->slot, &r) != 0);
}

/* hostile H-119 */
Test(slots, any_length)
{
	for (uint32_t octets = 0; octets < sizeof(struct request_handle) + 16; octets++) {
		struct program p = begin();
		struct request_handle q = handle_request(COMMAND_ALLOC_PD, open_context(p.fd));
		uint8_t contents[sizeof(q) + 16] = { 0 };

		if (octets == sizeof(q))
			q.handle++;
		q.h.length = octets;
		memcpy(contents, &q, sizeof(q));
		slot_fill(p.slot, contents, octets, SLOT_AWAITED);
		ring(&p);
		cr_expect(is_refused(&p), "%u octets", octets);
		end(&p);
	}
	expect_serving();
}

/* hostile H-119 */
Test(slots, any_state)
{
	struct program p = begin();
	struct request_handle q = handle_request(COMMAND_ALLOC_PD, 1);
	struct reply_handle r;

	for (uint32_t state = SLOT_REPLY; state < 100; state++) {
		put(&p, 0, &q.h, state);
		ring(&p);
	}
	put(&p, 0, &q.h, SLOT_AWAITED);
	ring(&p);
	cr_expect_eq(error_in(p.slot, &r), EINVAL, "no such context");
	end(&p);
}

static uint32_t stop; /* atomic */

static void *ring_on(void *arg)
{
	struct program *p = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		const uint64_t one = 1;

		if (write(p->bell, &one, sizeof(one)) < 0)
			return "the eventfd is full";
	}
	return NULL;
}

/* hostile H-123: a program that announces commands endlessly, and sends none, stops no other. */
Test(slots, a_bell_without_a_command)
{
	struct program p = begin(), q = begin();
	uint32_t context = open_context(q.fd);
	pthread_t thread;
	void *failed;

	cr_assert_eq(pthread_create(&thread, NULL, ring_on, &p), 0);
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t pd;

		cr_assert_eq(ask_handle(q.fd, COMMAND_ALLOC_PD, context, &pd), 0);
		cr_assert_eq(ask_handle(q.fd, COMMAND_DEALLOC_PD, pd, NULL), 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, &failed);
	cr_expect_null(failed, "%s", (char *)failed);
	end(&p);
	end(&q);
}
