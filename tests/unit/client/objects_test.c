/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "client/objects.h"

#define MANY 500

static struct object *find(uint64_t id, enum object_kind kind)
{
	struct object *o;

	objects_lock();
	o = object_find(id, kind);
	objects_unlock();
	return o;
}

Test(objects, is_found_by_number_and_kind)
{
	struct object cq = { 0 };

	cr_assert_eq(object_enter(&cq, OBJECT_CQ), 0);
	cr_assert_neq(cq.id, 0);
	cr_assert_eq(find(cq.id, OBJECT_CQ), &cq);
	cr_assert_null(find(cq.id, OBJECT_QP), "a number names an object of one kind");
	object_leave(&cq);
}

Test(objects, a_number_is_never_used_again)
{
	struct object first = { 0 }, second = { 0 };
	uint64_t old;

	object_enter(&first, OBJECT_CQ);
	old = first.id;
	object_leave(&first);
	cr_assert_null(find(old, OBJECT_CQ));
	for (int i = 0; i < MANY; i++) {
		object_enter(&second, OBJECT_CQ);
		cr_assert_neq(second.id, old);
		cr_assert_null(find(old, OBJECT_CQ),
			       "an event for the destroyed one finds nothing");
		object_leave(&second);
	}
}

static void count_one(struct object *o, void *argument)
{
	++*(int *)argument;
}

Test(objects, many_are_kept_apart)
{
	static struct object o[MANY];
	int seen = 0;

	for (int i = 0; i < MANY; i++)
		cr_assert_eq(object_enter(&o[i], i % 2 ? OBJECT_QP : OBJECT_CQ), 0);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(find(o[i].id, i % 2 ? OBJECT_QP : OBJECT_CQ), &o[i]);
	objects_lock();
	objects_each(OBJECT_QP, count_one, &seen);
	objects_unlock();
	cr_assert_eq(seen, MANY / 2);
	for (int i = 0; i < MANY; i++)
		object_leave(&o[i]);
}

Test(objects, leaving_twice_harms_nobody)
{
	struct object a = { 0 }, b = { 0 };

	object_enter(&a, OBJECT_CQ);
	object_leave(&a);
	object_leave(&a);
	object_enter(&b, OBJECT_CQ);
	object_leave(&a);
	cr_assert_eq(find(b.id, OBJECT_CQ), &b);
	object_leave(&b);
}
