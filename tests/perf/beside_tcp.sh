# SPDX-License-Identifier: BSD-3-Clause
# For scripts that compare uroce with kernel TCP between two namespaces, $a and $b; to be sourced. They kill
# what `pids` names.

# await SECONDS WHAT COMMAND...: waits until COMMAND succeeds, or fails and prints WHAT.
await() {
	local until=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $until ]; then
			echo "$what did not come" >&2
			exit 1
		fi
		sleep 0.1
	done
}

# tcp SECONDS ADDRESS: MiB/s from $a to this address of $b, in messages of 64 KiB
tcp() {
	ip netns exec "$b" qperf >/dev/null 2>&1 &
	local server=$!
	pids+=("$server")
	await 10 "qperf's server" bash -c "ip netns exec $b ss -ltn | grep -q :19765"
	ip netns exec "$a" qperf "$2" -t "$1" -m 64K -u tcp_bw | awk '
		/bw +=/ { v = $3; if ($4 ~ /^GB/) v *= 1e9; else if ($4 ~ /^MB/) v *= 1e6
		       printf "%.0f\n", v / 1048576 }'
	kill "$server"
}
