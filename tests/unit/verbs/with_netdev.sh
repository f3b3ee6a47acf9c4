#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program with an engine on a Linux interface: "wire0", one end of a veth pair in their own network
# namespace. The program may set the other end, "wire1", down. NETDEV_OPTIONS: further options of the engine.
# usage: with_netdev.sh UROCED PROGRAM [ARGUMENT...]
set -eu

if [ "${WITH_NETDEV:-}" = "" ]; then
	if [ "$(id -u)" -ne 0 ] || ! unshare --net true 2>/dev/null; then
		echo "needs root and a network namespace of its own"
		exit 77
	fi
	WITH_NETDEV=1 exec unshare --net "$0" "$@"
fi
. "$(dirname "$0")/beside_engine.sh"
uroced=$1
shift
ip link set lo up
ip link add wire0 type veth peer name wire1
ip address add 10.77.0.1/24 dev wire0
ip link set wire0 up
ip link set wire1 up
start_engine "$uroced" --no-huge -m 128 -l 0 -- --socket "$UROCE_SOCKET" --netdev wire0 ${NETDEV_OPTIONS:-}
run_beside "$@"
