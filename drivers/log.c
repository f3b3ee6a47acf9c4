/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/log.h"

RTE_LOG_REGISTER(uroce_log, uroce, NOTICE);
