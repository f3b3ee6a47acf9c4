#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program with a same-host engine of its own at $UROCE_SOCKET.
# usage: with_engine.sh [--for-all] UROCED PROGRAM [ARGUMENT...]
# --for-all: programs of every user may connect.
# $UROCED_LCORES: how many lcores the engine has (1).
set -eu

mode=0600
if [ "$1" = --for-all ]; then
	mode=0666
	shift
fi
uroced=$1
shift
work=$(mktemp -d)
[ $mode = 0600 ] || chmod 711 "$work"
export UROCE_SOCKET="$work/uroced.sock"
cpus="(0-$(($(nproc) - 1)))"
eal=
i=1
while [ $i -lt "${UROCED_LCORES:-1}" ]; do
	eal="${eal:---lcores=0@$cpus},$i@$cpus"
	i=$((i + 1))
done
"$uroced" --no-huge -m 256 $eal -- --socket "$UROCE_SOCKET" --socket-mode $mode \
	--ip 127.0.0.1/8 >"$work/log" 2>&1 &
engine=$!
export UROCED_PID=$engine
trap 'kill $engine 2>/dev/null || :; wait $engine 2>/dev/null || :; rm -rf "$work"' EXIT

tries=0
until [ -S "$UROCE_SOCKET" ]; do
	tries=$((tries + 1))
	if [ $tries -gt 300 ] || ! kill -0 $engine 2>/dev/null; then
		echo "the engine does not serve $UROCE_SOCKET:"
		cat "$work/log"
		exit 1
	fi
	sleep 0.1
done
status=0
"$@" || status=$?
if ! kill -0 $engine 2>/dev/null; then
	echo "the engine died:"
	cat "$work/log"
	exit 1
fi
engine_status=0
kill $engine
wait $engine || engine_status=$?
if [ $engine_status -eq 66 ]; then
	echo "the thread sanitizer has something to say about the engine:"
	cat "$work/log"
	exit 1
fi
exit $status
