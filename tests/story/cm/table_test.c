/* SPDX-License-Identifier: BSD-3-Clause */
/* Every message in every state: the new state, the answer, the event. */
#include "story/cm/parties.h"

#define NONE 0

enum column {
	REQ,
	MRA,
	REJ,
	REP,
	RTU,
	DREQ,
	DREP,
	SIDR_REQ,
	SIDR_REP,
	LAP,
	APR,
	COLUMNS
};

static const uint8_t attribute_of[COLUMNS] = { CM_REQ,	    CM_MRA,  CM_REJ,  CM_REP,
					       CM_RTU,	    CM_DREQ, CM_DREP, CM_SIDR_REQ,
					       CM_SIDR_REP, CM_LAP,  CM_APR };

/*
 * A message that the row does not name is ignored: state, answer, event and deadline do not change.
 */
struct cell {
	enum cm_verdict verdict;
	enum cm_state next;
	const char *answer; /* NULL: none */
	uint32_t events;
};

#define BECOMES(state, events)                           \
	{                                                \
		true,                                    \
		{                                        \
			CM_ACCEPTED, state, NULL, events \
		}                                        \
	}
#define BECOMES_AND_SAYS(state, said, events)            \
	{                                                \
		true,                                    \
		{                                        \
			CM_ACCEPTED, state, said, events \
		}                                        \
	}
#define STAYS                                           \
	{                                               \
		true,                                   \
		{                                       \
			CM_REPEATED, CM_STATES, NULL, 0 \
		}                                       \
	}
#define STAYS_AND_SAYS(said)                            \
	{                                               \
		true,                                   \
		{                                       \
			CM_REPEATED, CM_STATES, said, 0 \
		}                                       \
	}

struct row {
	enum cm_state state;
	bool passive;
	struct {
		bool taken;
		struct cell cell;
	} cell[COLUMNS];
};

/* clang-format off */
static const struct row table[] = {
	{ CM_IDLE, false, { } },
	{ CM_REQ_SENT, false, {
		[MRA] = BECOMES(CM_REQ_SENT, 0),
		[REJ] = BECOMES(CM_IDLE, CM_EVENT_REJECTED),
		[REP] = BECOMES(CM_REP_RECEIVED, CM_EVENT_REPLY),
	} },
	{ CM_REQ_RECEIVED, true, {
		[REQ] = STAYS_AND_SAYS("MRA"),
		[REJ] = BECOMES(CM_IDLE, CM_EVENT_REJECTED),
	} },
	{ CM_REP_SENT, true, {
		[REQ] = STAYS_AND_SAYS("REP"),
		[MRA] = BECOMES(CM_REP_SENT, 0),
		[REJ] = BECOMES(CM_IDLE, CM_EVENT_REJECTED),
		[RTU] = BECOMES(CM_ESTABLISHED, CM_EVENT_ESTABLISHED),
		[DREQ] = BECOMES(CM_DREQ_RECEIVED, CM_EVENT_DISCONNECTED),
	} },
	{ CM_REP_RECEIVED, false, {
		[REJ] = BECOMES(CM_TIMEWAIT, CM_EVENT_REJECTED),
		[REP] = STAYS_AND_SAYS("MRA"),
		[DREQ] = BECOMES(CM_DREQ_RECEIVED, CM_EVENT_DISCONNECTED),
	} },
	{ CM_ESTABLISHED, false, {
		[REJ] = BECOMES(CM_TIMEWAIT, CM_EVENT_DISCONNECTED),
		[REP] = STAYS_AND_SAYS("RTU"),
		[DREQ] = BECOMES(CM_DREQ_RECEIVED, CM_EVENT_DISCONNECTED),
		[LAP] = STAYS_AND_SAYS("APR"),
	} },
	{ CM_ESTABLISHED, true, {
		[REQ] = STAYS_AND_SAYS("REP"),
		[REJ] = BECOMES(CM_TIMEWAIT, CM_EVENT_DISCONNECTED),
		[RTU] = STAYS,
		[DREQ] = BECOMES(CM_DREQ_RECEIVED, CM_EVENT_DISCONNECTED),
		[LAP] = STAYS_AND_SAYS("APR"),
	} },
	{ CM_DREQ_SENT, false, {
		[REJ] = BECOMES(CM_TIMEWAIT, CM_EVENT_DISCONNECTED),
		[DREQ] = BECOMES_AND_SAYS(CM_TIMEWAIT, "DREP", CM_EVENT_DISCONNECTED),
		[DREP] = BECOMES(CM_TIMEWAIT, CM_EVENT_DISCONNECTED),
	} },
	{ CM_DREQ_SENT, true, {
		[REQ] = STAYS,
		[REJ] = BECOMES(CM_TIMEWAIT, CM_EVENT_DISCONNECTED),
		[DREQ] = BECOMES_AND_SAYS(CM_TIMEWAIT, "DREP", CM_EVENT_DISCONNECTED),
		[DREP] = BECOMES(CM_TIMEWAIT, CM_EVENT_DISCONNECTED),
	} },
	{ CM_DREQ_RECEIVED, false, {
		[DREQ] = STAYS,
	} },
	{ CM_DREQ_RECEIVED, true, {
		[REQ] = STAYS,
		[DREQ] = STAYS,
	} },
	{ CM_TIMEWAIT, false, {
		[DREQ] = STAYS_AND_SAYS("DREP"),
	} },
	{ CM_TIMEWAIT, true, {
		[REQ] = STAYS_AND_SAYS("REJ"),
		[DREQ] = STAYS_AND_SAYS("DREP"),
	} },
	{ CM_REJECTED, false, {
		[REP] = STAYS_AND_SAYS("REJ"),
	} },
	{ CM_REJECTED, true, {
		[REQ] = STAYS_AND_SAYS("REJ"),
	} },
	{ CM_SIDR_REQ_SENT, false, {
		[SIDR_REP] = BECOMES(CM_IDLE, CM_EVENT_SIDR_REPLY),
	} },
	{ CM_SIDR_REQ_RECEIVED, true, {
		[SIDR_REQ] = STAYS,
	} },
	{ CM_SIDR_REPLIED, true, {
		[SIDR_REQ] = STAYS_AND_SAYS("SIDR_REP"),
	} },
};
/* clang-format on */

/* The message as this connection's peer would send it. */
static struct cm_message arriving(const struct party *p, enum column column)
{
	struct cm_message m = from_peer_of(p, attribute_of[column]);

	if (column == MRA)
		m.about = cm_state(&p->c) == CM_REP_SENT ? CM_ABOUT_REP : CM_ABOUT_REQ;
	if (column == REJ && cm_state(&p->c) == CM_REQ_SENT)
		m.local_id = 0; /* like Linux's answer without a listener */
	return m;
}

static void expect_answer(struct party *p, const char *name)
{
	if (name != NULL)
		lose(p, name);
	expect_silence(p);
}

static void check(const struct row *row, enum column column)
{
	struct party *p = row->passive ? b : a;
	const struct cell *cell = &row->cell[column].cell;
	struct cm_connection before;
	struct cm_message m;

	begin_in(p, row->state);
	m = arriving(p, column);
	before = p->c;
	if (!row->cell[column].taken) {
		cr_assert_eq(cm_received(&p->c, &m, now), CM_IGNORED);
		before.asked = p->c.asked; /* it is read only if a DREP is owed */
		cr_expect_arr_eq(&p->c, &before, sizeof(before));
		return;
	}
	cr_assert(cm_belongs(&p->c, &m));
	cr_assert_eq(cm_received(&p->c, &m, now), cell->verdict);
	expect_state(p, cell->next == CM_STATES ? row->state : cell->next);
	expect_events(p, cell->events);
	expect_answer(p, cell->answer);
}

Test(cm_table, every_state_every_message)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		for (unsigned int column = 0; column < COLUMNS; column++)
			check(&table[i], (enum column)column);
	}
}

Test(cm_table, every_state_has_its_row)
{
	for (unsigned int state = 0; state < CM_STATES; state++) {
		bool found = false;

		for (size_t i = 0; i < ARRAY_SIZE(table); i++)
			found |= table[i].state == state;
		cr_expect(found, "%s", cm_state_name((enum cm_state)state));
		cr_expect_str_neq(cm_state_name((enum cm_state)state), "?");
	}
	cr_expect_str_eq(cm_state_name(CM_STATES), "?");
}

/* A message with other ids: those of another connection, or made up. */
Test(cm_table, other_ids_are_ignored_everywhere)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct party *p = table[i].passive ? b : a;

		for (unsigned int column = 0; column < COLUMNS; column++) {
			struct cm_message m;

			begin_in(p, table[i].state);
			m = arriving(p, (enum column)column);
			m.local_id ^= 0x100;
			m.remote_id ^= 0x100;
			cr_expect_not(cm_belongs(&p->c, &m));
			cr_expect_eq(cm_received(&p->c, &m, now), CM_IGNORED, "%s: %s",
				     cm_state_name(table[i].state), cm_attribute_name(m.attribute));
		}
	}
}

Test(cm_table, unknown_attributes_are_ignored_everywhere)
{
	static const uint8_t attributes[] = { 0, 1, 0x0f, 0x1b, 0x80, 0xff };

	for (size_t i = 0; i < ARRAY_SIZE(table) * ARRAY_SIZE(attributes); i++) {
		const struct row *row = &table[i / ARRAY_SIZE(attributes)];
		struct party *p = row->passive ? b : a;
		struct cm_message m;

		begin_in(p, row->state);
		m = from_peer_of(p, CM_RTU);
		m.attribute = attributes[i % ARRAY_SIZE(attributes)];
		cr_expect_eq(cm_received(&p->c, &m, now), CM_IGNORED);
		expect_state(p, row->state);
	}
}

/* ---- the program's calls ---- */

enum call {
	CONNECT,
	ACCEPT,
	READY,
	ESTABLISH,
	REJECT,
	DELAY,
	DISCONNECT,
	SIDR_CONNECT,
	SIDR_REPLY,
	CALLS
};

static int call(struct party *p, enum call which)
{
	struct cm_message m;

	switch (which) {
	case CONNECT:
		m = req_of(p);
		return cm_connect(&p->c, &m, now);
	case ACCEPT:
		m = rep_of(p);
		return cm_accept(&p->c, &m, now);
	case READY:
		return cm_ready(&p->c, NULL, 0, now);
	case ESTABLISH:
		return cm_establish(&p->c, now);
	case REJECT:
		return cm_reject(&p->c, &(struct cm_rejection){ .reason = 28 }, now);
	case DELAY:
		return cm_delay(&p->c, 20, now);
	case DISCONNECT:
		return cm_disconnect(&p->c, NULL, 0, now);
	case SIDR_CONNECT:
		m = from_peer_of(p->peer, CM_SIDR_REQ);
		return cm_sidr_connect(&p->c, &m, RESPONSE, RETRIES, now);
	default:
		m = (struct cm_message){ .qpn = 5 };
		return cm_sidr_reply(&p->c, &m, now);
	}
}

static const struct {
	enum cm_state from;
	bool passive;
	enum call call;
	enum cm_state to;
	const char *says;
} legal[] = {
	{ CM_IDLE, false, CONNECT, CM_REQ_SENT, "REQ" },
	{ CM_IDLE, false, SIDR_CONNECT, CM_SIDR_REQ_SENT, "SIDR_REQ" },
	{ CM_REQ_SENT, false, REJECT, CM_IDLE, "REJ" },
	{ CM_REQ_RECEIVED, true, ACCEPT, CM_REP_SENT, "REP" },
	{ CM_REQ_RECEIVED, true, REJECT, CM_REJECTED, "REJ" },
	{ CM_REQ_RECEIVED, true, DELAY, CM_REQ_RECEIVED, "MRA" },
	{ CM_REP_SENT, true, REJECT, CM_TIMEWAIT, "REJ" },
	{ CM_REP_SENT, true, ESTABLISH, CM_ESTABLISHED, NULL },
	{ CM_REP_RECEIVED, false, READY, CM_ESTABLISHED, "RTU" },
	{ CM_REP_RECEIVED, false, REJECT, CM_REJECTED, "REJ" },
	{ CM_REP_RECEIVED, false, DELAY, CM_REP_RECEIVED, "MRA" },
	{ CM_ESTABLISHED, false, DISCONNECT, CM_DREQ_SENT, "DREQ" },
	{ CM_ESTABLISHED, true, DISCONNECT, CM_DREQ_SENT, "DREQ" },
	{ CM_DREQ_RECEIVED, false, DISCONNECT, CM_TIMEWAIT, "DREP" },
	{ CM_DREQ_RECEIVED, true, DISCONNECT, CM_TIMEWAIT, "DREP" },
	{ CM_SIDR_REQ_RECEIVED, true, SIDR_REPLY, CM_SIDR_REPLIED, "SIDR_REP" },
};

/* In every other state: EINVAL (EISCONN if it is established already), and no effect. */
static void refused(const struct row *row, enum call which)
{
	struct party *p = row->passive ? b : a;
	struct cm_connection before = p->c;
	int wanted = which == ESTABLISH && row->state == CM_ESTABLISHED ? EISCONN : EINVAL;

	cr_expect_eq(call(p, which), wanted, "%s: call %d", cm_state_name(row->state), which);
	cr_expect_arr_eq(&p->c, &before, sizeof(before));
}

Test(cm_table, every_state_every_call)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct party *p = table[i].passive ? b : a;

		for (unsigned int which = 0; which < CALLS; which++) {
			size_t k = 0;

			begin_in(p, table[i].state);
			while (k < ARRAY_SIZE(legal) &&
			       (legal[k].from != table[i].state || legal[k].call != which ||
				legal[k].passive != table[i].passive))
				k++;
			if (k == ARRAY_SIZE(legal)) {
				refused(&table[i], (enum call)which);
				continue;
			}
			cr_expect_eq(call(p, (enum call)which), 0);
			expect_state(p, legal[k].to);
			expect_answer(p, legal[k].says);
		}
	}
}
