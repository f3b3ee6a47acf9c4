#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program with an engine on a Linux interface: "wire0", one end of a veth pair in a network
# namespace of their own. The other end, "wire1", is the program's to pull.
# usage: with_netdev.sh UROCED PROGRAM [ARGUMENT...]
set -eu

if [ "${WITH_NETDEV:-}" = "" ]; then
	if [ "$(id -u)" -ne 0 ] || ! unshare --net true 2>/dev/null; then
		echo "needs root and a network namespace of its own"
		exit 77
	fi
	WITH_NETDEV=1 exec unshare --net "$0" "$@"
fi
uroced=$1
shift
work=$(mktemp -d)
export UROCE_SOCKET="$work/uroced.sock"
ip link set lo up
ip link add wire0 type veth peer name wire1
ip address add 10.77.0.1/24 dev wire0
ip link set wire0 up
ip link set wire1 up
"$uroced" --no-huge -m 256 -l 0 -- --socket "$UROCE_SOCKET" --netdev wire0 >"$work/log" 2>&1 &
engine=$!
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
exit $status
