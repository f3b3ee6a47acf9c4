/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which a program that polls its memory sees what arrives: all octets of a WRITE
 * before its last one, and a WRITE before the next, even if one part of the memory is promoted and
 * another is peer memory. Runs with UROCE_PROMOTE=on and an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "rig/endpoint.h"

#define PAGE   4096u
#define REGION (1u << 20)
#define LENGTH 16384u /* as many packets as go in one turn */
#define LONG   65536u /* four turns */
#define ROUNDS 1000
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct endpoint e;

static void setup(void)
{
	endpoint_open(&e);
}

static void teardown(void)
{
	endpoint_close(&e);
}

TestSuite(visible, .init = setup, .fini = teardown, .timeout = 100);

static bool is_promoted(const void *at)
{
	unsigned long wanted = (unsigned long)at, from, to;
	FILE *maps = fopen("/proc/self/maps", "re");
	bool promoted = false;
	char line[512];

	cr_assert_not_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= wanted && wanted < to)
			promoted = strstr(line, "uroce-promoted") != NULL;
	fclose(maps);
	return promoted;
}

/* With it the engine is asked for the first time. */
Test(visible, the_first_region_of_a_program_is_promoted)
{
	cr_expect(is_promoted(e.buffer));
}

/* Whole pages: REGION octets after `shared` octets, which are never promoted. */
static uint8_t *make_memory(size_t shared)
{
	uint8_t *m = mmap(NULL, shared + REGION + PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(m, MAP_FAILED);
	if (shared > 0)
		cr_assert_neq(mmap(m, shared, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			      MAP_FAILED);
	memset(m, 0, shared + REGION + PAGE);
	return m;
}

static struct ibv_mr *make_region(void *at, size_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(e.pd, at, length, ACCESS);

	cr_assert_not_null(mr, "ibv_reg_mr: %m");
	return mr;
}

struct target {
	uint8_t *at;
	uint32_t length;
	const struct ibv_mr *mr;
};

/* WRITEs that are posted together, the last one signaled. */
static void post_writes(const struct target *to, int n)
{
	struct ibv_send_wr wr[2], *bad;
	struct ibv_sge sge[2];

	for (int i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)e.buffer, to[i].length, e.mr->lkey };
		wr[i] = (struct ibv_send_wr){ .next = i + 1 < n ? &wr[i + 1] : NULL,
					      .sg_list = &sge[i],
					      .num_sge = 1,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .send_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED };
		wr[i].wr.rdma.remote_addr = (uintptr_t)to[i].at;
		wr[i].wr.rdma.rkey = to[i].mr->rkey;
	}
	cr_assert_eq(ibv_post_send(e.qp[0], wr, &bad), 0);
}

static void spin_until(const uint8_t *at, uint8_t value)
{
	time_t until = time(NULL) + WAIT_SECONDS;

	for (uint32_t i = 1; __atomic_load_n(at, __ATOMIC_ACQUIRE) != value; i++)
		if (i % 65536 == 0)
			cr_assert_lt(time(NULL), until, "the WRITE did not come");
}

/* How many octets of [at, at + length) are old when the last one is new. */
static uint32_t old_octets(const uint8_t *at, uint32_t length, uint8_t value)
{
	uint32_t old = 0;

	spin_until(at + length - 1, value);
	for (uint32_t i = 0; i < length; i++)
		old += __atomic_load_n(at + i, __ATOMIC_RELAXED) != value;
	return old;
}

static void completed(const char *what)
{
	struct ibv_wc wc;

	poll_completions(e.cq, &wc, 1, what);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
}

/* WRITEs of one value each, of a length. */
static void poll_the_last_octet(uint8_t *at, uint32_t length, const struct ibv_mr *mr, int rounds)
{
	const struct target to = { at, length, mr };
	uint32_t most = 0;
	int early = 0;

	for (int round = 1; round <= rounds; round++) {
		uint32_t old;

		memset(e.buffer, round, length);
		post_writes(&to, 1);
		old = old_octets(at, length, (uint8_t)round);
		early += old > 0;
		most = old > most ? old : most;
		completed("a WRITE");
	}
	cr_assert_eq(early, 0, "in %d of %d rounds the last octet came before %u others", early,
		     rounds, most);
}

/* As any malloc of 128 KiB or more gives it. */
Test(visible, the_last_octet_of_a_write_to_allocated_memory)
{
	uint8_t *m = make_memory(0) + 16;
	struct ibv_mr *mr = make_region(m, REGION);

	cr_assert(is_promoted(m + PAGE));
	poll_the_last_octet(m, LENGTH, mr, ROUNDS);
	poll_the_last_octet(m, LONG, mr, 3 * ROUNDS);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
}

Test(visible, the_last_octet_of_a_write_that_begins_in_shared_memory)
{
	uint8_t *m = make_memory(4 * PAGE);
	struct ibv_mr *mr = make_region(m, 4 * PAGE + REGION);

	cr_assert(is_promoted(m + 4 * PAGE) && !is_promoted(m));
	poll_the_last_octet(m, LENGTH, mr, ROUNDS);
	poll_the_last_octet(m, LONG, mr, ROUNDS);
	poll_the_last_octet(m + 3 * PAGE + 2048 + 3, LENGTH, mr,
			    ROUNDS); /* the first packet has spans of both */
	cr_assert_eq(ibv_dereg_mr(mr), 0);
}

/* Data in peer memory and a flag in promoted memory, or the reverse. */
static void poll_a_flag(uint8_t *data, uint32_t length, const struct ibv_mr *mr, uint8_t *flag,
			const struct ibv_mr *flag_mr)
{
	const struct target to[2] = { { data, length, mr }, { flag, 1, flag_mr } };
	int early = 0;

	for (int round = 1; round <= ROUNDS; round++) {
		memset(e.buffer, round, length);
		post_writes(to, 2);
		spin_until(flag, (uint8_t)round);
		for (uint32_t i = 0; i < length; i++)
			if (__atomic_load_n(data + i, __ATOMIC_RELAXED) != (uint8_t)round) {
				early++;
				break;
			}
		completed("two WRITEs");
	}
	cr_assert_eq(early, 0, "in %d of %d rounds the flag came before its data", early, ROUNDS);
}

Test(visible, a_flag_in_promoted_memory_comes_after_its_data)
{
	uint8_t *data = make_memory(LENGTH), *flag = make_memory(0);
	struct ibv_mr *mr = make_region(data, LENGTH), *flag_mr = make_region(flag, REGION);

	cr_assert(is_promoted(flag) && !is_promoted(data));
	poll_a_flag(data, 512, mr, flag, flag_mr);
	poll_a_flag(data, LENGTH, mr, flag, flag_mr);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(ibv_dereg_mr(flag_mr), 0);
}

Test(visible, a_flag_in_other_memory_comes_after_promoted_data)
{
	uint8_t *flag = make_memory(PAGE), *data = make_memory(0);
	struct ibv_mr *flag_mr = make_region(flag, PAGE), *mr = make_region(data, REGION);

	cr_assert(is_promoted(data) && !is_promoted(flag));
	poll_a_flag(data, LENGTH, mr, flag, flag_mr);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(ibv_dereg_mr(flag_mr), 0);
}
