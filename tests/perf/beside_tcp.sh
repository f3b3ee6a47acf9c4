# SPDX-License-Identifier: BSD-3-Clause
# For scripts that compare uroce with kernel TCP between two namespaces; to be sourced.

pids=() # what runs in the background

# forget: ends it.
forget() {
	local pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
	pids=()
	rm -f "$work"/socket*
}

cleanup() {
	forget
	ip netns del "$a" 2>/dev/null || true
	ip netns del "$b" 2>/dev/null || true
	rm -rf "$work"
}

# begin PREFIX: the folder $work, and the namespaces $a and $b with a veth between them, `wire` in both, with
# 10.61.0.1 and 10.61.0.2. The end of the script takes all of it away.
begin() {
	local ns
	work=$(mktemp -d)
	a=$1-a-$$ b=$1-b-$$
	trap cleanup EXIT
	ip netns add "$a"
	ip netns add "$b"
	ip link add wire netns "$a" type veth peer name wire netns "$b"
	ip -n "$a" address add 10.61.0.1/24 dev wire
	ip -n "$b" address add 10.61.0.2/24 dev wire
	for ns in "$a" "$b"; do
		ip -n "$ns" link set lo up
		ip -n "$ns" link set wire up
	done
}

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
