#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compares an unmodified ib_write_bw on one engine with kernel TCP between two namespaces. Run it as
# root. Prints MiB/s and the ratio, without a verdict. Needs qperf, perftest, iproute2.
#	tests/perf/against_tcp.sh [BUILD-FOLDER]
set -euo pipefail
. "$(dirname "$0")/beside_tcp.sh"
build=$(realpath "${1:-build}")
begin uroce-tcp

# write_bw PROMOTE: MiB/s with messages of 64 KiB.
write_bw() {
	local program=(ip netns exec "$a" env UROCE_PROMOTE="$1" "$build/apps/uroce" run --quiet
		--socket "$work/socket" -- ib_write_bw -d uroce0 -x 1 -F -s 65536 -n 30000)
	"${program[@]}" >"$work/server.log" 2>&1 &
	pids+=($!)
	await 10 "ib_write_bw's server" bash -c "ip netns exec $a ss -ltn | grep -q :18515"
	"${program[@]}" 10.61.0.1 | awk '$1 == 65536 { printf "%.0f", $4 }'
	wait "${pids[-1]}" || true
}

ip netns exec "$a" "$build/apps/uroced" --no-huge -- --socket "$work/socket" >"$work/engine.log" 2>&1 &
pids+=($!)
await 20 "the engine" test -S "$work/socket"

tcp=$(tcp 3 10.61.0.2)
promoted=$(write_bw on)
peer=$(write_bw off)
printf '%-44s %8s MiB/s\n' "kernel TCP on veth (qperf tcp_bw, 64 KiB)" "$tcp"
printf '%-44s %8s MiB/s  %s of TCP\n' "ib_write_bw 64 KiB, memory promoted" "$promoted" \
	"$(awk "BEGIN { printf \"%.2f\", $promoted / $tcp }")"
printf '%-44s %8s MiB/s  %s of TCP\n' "ib_write_bw 64 KiB, UROCE_PROMOTE=off" "$peer" \
	"$(awk "BEGIN { printf \"%.2f\", $peer / $tcp }")"
