/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRANSPORT_COPIED_H
#define TRANSPORT_COPIED_H

#include <stdbool.h>

#include "transport/qp.h"

/* Reports for what is under way are ignored from now on. */
void tickets_abandon(struct qp *qp);

#endif
