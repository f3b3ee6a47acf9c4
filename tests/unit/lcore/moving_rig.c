/* SPDX-License-Identifier: BSD-3-Clause */
#include "moving_rig.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "queue/doorbell.h"

#define POLLS 2000 /* of a mover that is held up */

struct rig *r;
struct client other;
struct gate gate;

static void give_mover(struct client *c)
{
	c->memory = rig_own_memory();
	c->mover = mover_create(c->memory, NULL, 2);
	cr_assert_not_null(c->mover);
}

static void take_mover(struct client *c)
{
	mover_close(c->mover);
	peer_memory_close(c->memory);
	free(c->memory);
	c->mover = NULL;
	c->memory = NULL;
}

void make_peer(uint32_t side, struct client *c)
{
	struct region *m =
		(struct region *)(uintptr_t)key_withdraw(&r->engine.keys, r->side[side].key);

	m->client = c->number;
	m->piece[0].direct = NULL;
	m->piece[0].peer_address = (uintptr_t)r->side[side].buffer;
	key_publish(&r->engine.keys, r->side[side].key, m);
	r->side[side].qp.client = c;
}

void *blocking_page(int *fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		cr_skip_test("no privilege for a full userfaultfd");
	cr_assert_eq(ioctl(*fd, UFFDIO_API, &api), 0);
	reg.range.start = (uintptr_t)p;
	reg.range.len = PAGE;
	cr_assert_eq(ioctl(*fd, UFFDIO_REGISTER, &reg), 0);
	return p;
}

void close_gate(struct client *c)
{
	struct pollfd p;

	gate.page = blocking_page(&gate.fd);
	for (uint32_t i = 0; i < READS; i++)
		gate.copy[i] = (struct peer_copy){ .peer_address = (uintptr_t)gate.page + 8 * i,
						   .local = &gate.local[i],
						   .length = 8 };
	gate.batch = (struct mover_batch){ .copy = gate.copy, .count = READS, .lcore = 1 };
	cr_assert(mover_submit(c->mover, &gate.batch));
	p = (struct pollfd){ .fd = gate.fd, .events = POLLIN };
	cr_assert_eq(poll(&p, 1, 10000), 1, "the mover did not come to the page");
}

void open_gate(void)
{
	close(gate.fd);
}

/*
 * A second client, with a doorbell ring of its own, which no program uses: rig_post rings the first
 * client's.
 */
static void make_other(void)
{
	void *ring = arena_at(
		r->arena, arena_allocate(r->arena, ring_bytes(DOORBELL_SLOTS, DOORBELL_STRIDE)));

	other = r->client;
	other.number = 1;
	ring_format(ring, DOORBELL_SLOTS, true);
	ring_side_init(&other.bell[0], ring, DOORBELL_SLOTS, DOORBELL_STRIDE);
}

void moving_rig_open(uint8_t timeout)
{
	rig_timeout = timeout;
	r = rig_open();
	make_other();
	r->engine.client[0] = &r->client;
	r->engine.client[1] = &other;
	give_mover(&r->client);
	give_mover(&other);
	lcore_client_attach(r->engine.lcore, &other);
	make_peer(1, &r->client);
	make_peer(3, &other);
	r->side[2].qp.client = &other;
	for (uint32_t i = 0; i < RIG_BUFFER; i++)
		r->side[0].buffer[i] = r->side[2].buffer[i] = (uint8_t)(i * 7 + 3);
}

void moving_rig_close(void)
{
	take_mover(&r->client);
	take_mover(&other);
	rig_close(r);
}

void poll_some(void)
{
	for (int i = 0; i < POLLS; i++)
		rig_poll(r);
}

void wait_for(uint32_t side, uint32_t completions)
{
	nanotime until = clock_now() + PATIENCE;

	while (r->side[side].completions < completions && clock_now() < until)
		rig_poll(r);
	cr_assert_eq(r->side[side].completions, completions,
		     "%u of %u completions came, the last with status %u, reason %s",
		     r->side[side].completions, completions, r->side[side].last.status,
		     reason_sentence(r->side[side].last.vendor_err));
}

void run_until(uint32_t side, uint32_t completions)
{
	wait_for(side, completions);
	cr_assert_eq(r->side[side].last.status, STATUS_SUCCESS);
}

uint64_t dropped(void)
{
	return r->engine.lcore->stats.by_reason[REASON_BUSY];
}
