#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program with its own same-host engine at $UROCE_SOCKET.
# usage: with_engine.sh [--for-all] UROCED PROGRAM [ARGUMENT...]
# --for-all: programs of every user may connect.
# $UROCED_LCORES: how many lcores the engine has (1).
# $ONE_PROCESSOR: both have one processor, because a program that only sends commands, one after the other,
# takes a third of the time there.
set -eu

if [ -n "${ONE_PROCESSOR-}" ]; then
	taskset -cp "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" $$ >/dev/null
fi

. "$(dirname "$0")/beside_engine.sh"
mode=0600
if [ "$1" = --for-all ]; then
	mode=0666
	shift
	chmod 711 "$work"
fi
uroced=$1
shift
cpus="(0-$(($(nproc) - 1)))"
eal=
i=1
while [ $i -lt "${UROCED_LCORES:-1}" ]; do
	eal="${eal:---lcores=0@$cpus},$i@$cpus"
	i=$((i + 1))
done
start_engine "$uroced" --no-huge -m 32 $eal -- --socket "$UROCE_SOCKET" --socket-mode $mode \
	--ip 127.0.0.1/8
run_beside "$@"
