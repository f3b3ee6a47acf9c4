/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "client/verbs_object.h"

#define MANY 500

static struct verbs_object *find(uint64_t id, enum verbs_object_kind kind)
{
	struct verbs_object *o;

	verbs_objects_lock();
	o = verbs_object_find(id, kind);
	verbs_objects_unlock();
	return o;
}

Test(verbs_object, is_found_by_number_and_kind)
{
	struct verbs_object cq = { 0 };

	cr_assert_eq(verbs_object_enter(&cq, VERBS_OBJECT_CQ), 0);
	cr_assert_neq(cq.id, 0);
	cr_assert_eq(find(cq.id, VERBS_OBJECT_CQ), &cq);
	cr_assert_null(find(cq.id, VERBS_OBJECT_QP), "a number names an object of one kind");
	verbs_object_leave(&cq);
}

Test(verbs_object, a_number_is_never_used_again)
{
	struct verbs_object first = { 0 }, second = { 0 };
	uint64_t old;

	verbs_object_enter(&first, VERBS_OBJECT_CQ);
	old = first.id;
	verbs_object_leave(&first);
	cr_assert_null(find(old, VERBS_OBJECT_CQ));
	for (int i = 0; i < MANY; i++) {
		verbs_object_enter(&second, VERBS_OBJECT_CQ);
		cr_assert_neq(second.id, old);
		cr_assert_null(find(old, VERBS_OBJECT_CQ),
			       "an event for the destroyed one finds nothing");
		verbs_object_leave(&second);
	}
}

static void count_one(struct verbs_object *o, void *argument)
{
	++*(int *)argument;
}

Test(verbs_object, many_are_kept_apart)
{
	static struct verbs_object o[MANY];
	int seen = 0;

	for (int i = 0; i < MANY; i++)
		cr_assert_eq(verbs_object_enter(&o[i], i % 2 ? VERBS_OBJECT_QP : VERBS_OBJECT_CQ),
			     0);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(find(o[i].id, i % 2 ? VERBS_OBJECT_QP : VERBS_OBJECT_CQ), &o[i]);
	verbs_objects_lock();
	verbs_objects_each(VERBS_OBJECT_QP, count_one, &seen);
	verbs_objects_unlock();
	cr_assert_eq(seen, MANY / 2);
	for (int i = 0; i < MANY; i++)
		verbs_object_leave(&o[i]);
}

/* The low half of a number is the index of a slot. There are 64 at first. */
Test(verbs_object, each_slot_is_used_before_there_are_more)
{
	enum {
		SLOTS = 64
	};
	static struct verbs_object o[SLOTS];

	for (int i = 0; i < SLOTS; i++) {
		cr_assert_eq(verbs_object_enter(&o[i], VERBS_OBJECT_CQ), 0);
		cr_assert_lt((uint32_t)o[i].id, SLOTS);
	}
	for (int i = 0; i < SLOTS; i++) {
		uint32_t index = (uint32_t)o[i].id;

		verbs_object_leave(&o[i]);
		cr_assert_eq(verbs_object_enter(&o[i], VERBS_OBJECT_CQ), 0);
		cr_assert_eq((uint32_t)o[i].id, index, "no other one is free");
	}
	for (int i = 0; i < SLOTS; i++)
		verbs_object_leave(&o[i]);
}

Test(verbs_object, leaving_twice_is_harmless)
{
	struct verbs_object a = { 0 }, b = { 0 };

	verbs_object_enter(&a, VERBS_OBJECT_CQ);
	verbs_object_leave(&a);
	verbs_object_leave(&a);
	verbs_object_enter(&b, VERBS_OBJECT_CQ);
	verbs_object_leave(&a);
	cr_assert_eq(find(b.id, VERBS_OBJECT_CQ), &b);
	verbs_object_leave(&b);
}
