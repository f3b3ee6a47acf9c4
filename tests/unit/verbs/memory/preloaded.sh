#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program with a preloaded library; skips it if the machine does not have the library.
# usage: preloaded.sh LIBRARY PROGRAM [ARGUMENT...]
set -eu

library=$1
shift
# the loader only warns of a missing library
if ! LD_PRELOAD=$library ldd "$1" 2>/dev/null | grep -q "$library.*=> */\|^[[:space:]]*/.*$library"; then
	echo "skipped: $library is not installed"
	exit 77
fi
LD_PRELOAD=$library exec "$@"
