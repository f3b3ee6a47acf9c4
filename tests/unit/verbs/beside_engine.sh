# SPDX-License-Identifier: BSD-3-Clause
# Sourced by with_engine.sh, with_netdev.sh and with_peer.sh: starts and ends their engine.

work=$(mktemp -d)
export UROCE_SOCKET="$work/uroced.sock"

# start_engine UROCED [ARGUMENT...]: returns when it serves $UROCE_SOCKET. The engine ends with this shell.
start_engine() {
	"$@" >"$work/log" 2>&1 &
	engine=$!
	export UROCED_PID=$engine
	trap 'kill $engine 2>/dev/null || :; wait $engine 2>/dev/null || :; rm -rf "$work"' EXIT
	await_socket "$UROCE_SOCKET" $engine "$work/log"
}

# await_socket PATH PID LOG: returns when that engine serves the socket.
await_socket() {
	tries=0
	until [ -S "$1" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 300 ] || ! kill -0 $2 2>/dev/null; then
			echo "the engine does not serve $1:"
			cat "$3"
			exit 1
		fi
		sleep 0.1
	done
}

# end_engine PID LOG: exits if it has died or failed.
end_engine() {
	if ! kill -0 $1 2>/dev/null; then
		echo "the engine died:"
		cat "$2"
		exit 1
	fi
	engine_status=0
	kill $1
	wait $1 || engine_status=$?
	# a sanitizer may report errors at the end
	if [ $engine_status -ne 0 ]; then
		echo "the engine ended with status $engine_status:"
		cat "$2"
		exit 1
	fi
}

# run_beside PROGRAM [ARGUMENT...]: exits with the program's status, unless the engine has died or failed.
run_beside() {
	status=0
	"$@" || status=$?
	end_engine $engine "$work/log"
	exit $status
}
