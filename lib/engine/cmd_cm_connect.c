/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the connection manager: connections. */
#include <errno.h>

#include "engine/cm_manager.h"

#define NOT_YET(name)                                                                \
	int name(struct call *call)                                                  \
	{                                                                            \
		return call_fail(call, EOPNOTSUPP, "connections are not there yet"); \
	}

NOT_YET(cmd_cm_connect)
NOT_YET(cmd_cm_accept)
NOT_YET(cmd_cm_reject)
NOT_YET(cmd_cm_disconnect)
NOT_YET(cmd_cm_establish)
NOT_YET(cmd_cm_notify)
NOT_YET(cmd_cm_init_qp_attr)
