# SPDX-License-Identifier: BSD-3-Clause
# Sourced by with_engine.sh and with_netdev.sh: starts and ends their engine.

work=$(mktemp -d)
export UROCE_SOCKET="$work/uroced.sock"

# start_engine UROCED [ARGUMENT...]: returns when it serves $UROCE_SOCKET. The engine ends with this shell.
start_engine() {
	"$@" >"$work/log" 2>&1 &
	engine=$!
	export UROCED_PID=$engine
	trap 'kill $engine 2>/dev/null || :; wait $engine 2>/dev/null || :; rm -rf "$work"' EXIT
	tries=0
	until [ -S "$UROCE_SOCKET" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 1500 ] || ! kill -0 $engine 2>/dev/null; then
			echo "the engine does not serve $UROCE_SOCKET:"
			cat "$work/log"
			exit 1
		fi
		sleep 0.02
	done
}

# run_beside PROGRAM [ARGUMENT...]: exits with the program's status, unless the engine has died or failed.
run_beside() {
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
	# a sanitizer may report errors at the end
	if [ $engine_status -ne 0 ]; then
		echo "the engine ended with status $engine_status:"
		cat "$work/log"
		exit 1
	fi
	exit $status
}
