/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRANSPORT_COPIED_H
#define TRANSPORT_COPIED_H

#include <stdbool.h>

#include "transport/qp.h"

/* From now on reports for copies under way are ignored. */
void tickets_abandon(struct qp *qp);

#endif
