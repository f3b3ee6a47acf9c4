/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, as a peer or a program may send them, at a table of SLOTS slots with regions of any contents. */
#include "memory/check.c"
#include "memory/permutation.c"

#include "proof.h"

#define SLOTS 5u /* not a power of two */

static struct permutation permutation;
static struct region regions[SLOTS];
static const struct region *slot[SLOTS];

/* Every secret: the tables hold numbers of twelve bits. */
void any_secret(void)
{
	uint8_t secret[16];
	uint32_t i = any_of(0, PERMUTATION_ROUNDS - 1), k = any_of(0, PERMUTATION_MASK);

	any_octets(secret, sizeof(secret));
	permutation_init(&permutation, secret);
	//@ assert half: permutation.round[i][k] <= PERMUTATION_MASK;
	PROVED;
}

/* Every key, user, address and length: no access outside of the table. */
void any_key(void)
{
	uint32_t i = any_of(0, PERMUTATION_ROUNDS - 1), k = any_of(0, PERMUTATION_MASK);
	struct key_table t = { .slot = slot, .slots = SLOTS, .permutation = &permutation };
	struct key_user user = { .pd = any_word(), .qpn = any_word() };
	const struct region *found = NULL;

	permutation.round[i][k] = any_of(0, PERMUTATION_MASK); /* any_secret */
	any_octets(regions, sizeof(regions));
	for (uint32_t n = 0; n < SLOTS; n++) {
		regions[n].kind =
			any_of(REGION_MEMORY, REGION_NULL); /* as the control path writes it */
		slot[n] = any_of(0, 1) ? &regions[n] : NULL;
	}
	if (key_check(&t, any_word(), user, any_word(), any_of(0, UINT64_MAX),
		      any_of(0, UINT64_MAX), &found) == REASON_NONE) {
		//@ assert found: \valid_read(found);
	}
	key_check_invalidate(&t, any_word(), user);
	PROVED;
}

/*@ requires \valid_read(&r->iova) && \valid_read(&r->length);
    assigns \nothing;
    ensures \result ==> address >= r->iova && (integer)address + length <= (integer)r->iova + r->length;
    ensures (integer)address >= r->iova && (integer)address + length <= (integer)r->iova + r->length
            ==> \result; */
static bool range_contract(const struct region *r, uint64_t address, uint64_t length)
{
	return range_in_region(r, address, length);
}

/*@ assigns \nothing;
    ensures \result <==> (integer)start + length <= size; */
static bool inside_contract(uint64_t start, uint64_t length, uint64_t size)
{
	return range_inside(start, length, size);
}

void *const keys_contracts[] = { (void *)range_contract, (void *)inside_contract };
