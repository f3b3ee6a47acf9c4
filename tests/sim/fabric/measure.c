/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "measure.h"

#define ROOM_FIRST 1024u

void measure_free(struct measure *m)
{
	free(m->took);
}

static void note(struct measure *m, double took)
{
	if (m->messages == m->room) {
		m->room = m->room == 0 ? ROOM_FIRST : 2 * m->room;
		m->took = realloc(m->took, m->room * sizeof(*m->took));
		if (m->took == NULL)
			abort();
	}
	m->took[m->messages++] = took;
}

bool measure_message(struct measure *m, nanotime posted_at, nanotime now)
{
	if (now < m->begin || now > m->end)
		return false;
	note(m, (double)(now - posted_at));
	return true;
}

void measure_pending(struct measure *m, nanotime posted_at)
{
	if (posted_at < m->end)
		note(m, (double)(m->end - posted_at));
}

static int in_order(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double measure_quantile(struct measure *m, double share)
{
	if (m->messages == 0)
		return 0;
	qsort(m->took, m->messages, sizeof(*m->took), in_order);
	return m->took[(uint64_t)(share * (double)(m->messages - 1))];
}

double measure_fairness(const double *value, uint32_t n)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += value[i];
		squares += value[i] * value[i];
	}
	return squares > 0 ? sum * sum / (n * squares) : 0;
}
