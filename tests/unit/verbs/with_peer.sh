#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program with two engines that a wire (memif) joins: the one at $UROCE_SOCKET has 10.7.0.1, 10.7.0.3 and
# fd07::1, the one at $UROCE_PEER_SOCKET 10.7.0.2, 10.7.0.4 and fd07::2. Programs of every user may connect.
# usage: with_peer.sh UROCED PROGRAM [ARGUMENT...]
set -eu

. "$(dirname "$0")/beside_engine.sh"
chmod 711 "$work"
export UROCE_PEER_SOCKET="$work/peer.sock"
uroced=$1
shift

# words ROLE SOCKET ADDRESSES: the arguments of one engine
words() {
	echo "--no-huge -m 128 --vdev=net_memif0,role=$1,socket=$work/wire,socket-abstract=no --" \
		"--port net_memif0 --socket $2 --socket-mode 0666 --ip $3"
}

# shellcheck disable=SC2046 # these are words
start_engine "$uroced" $(words server "$UROCE_SOCKET" 10.7.0.1/24,10.7.0.3/24,fd07::1/64)
# shellcheck disable=SC2046
"$uroced" $(words client "$UROCE_PEER_SOCKET" 10.7.0.2/24,10.7.0.4/24,fd07::2/64) >"$work/peer.log" 2>&1 &
peer=$!
export UROCED_PEER_PID=$peer
trap 'kill $engine $peer 2>/dev/null || :; wait $engine $peer 2>/dev/null || :; rm -rf "$work"' EXIT
await_socket "$UROCE_PEER_SOCKET" $peer "$work/peer.log"
status=0
"$@" || status=$?
end_engine $peer "$work/peer.log"
end_engine $engine "$work/log"
exit $status
