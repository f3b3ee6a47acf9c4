#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compares an unmodified ib_write_bw over --netdev, with each --netdev-driver, with kernel TCP on the same
# veth between two namespaces: alone, with segmentation offload, and beside engines with af_xdp, whose program
# keeps the kernel from using it. In turn, ROUNDS times; prints the medians in MiB/s and the ratios,
# without a verdict. Run it as root. Needs qperf, perftest, iproute2.
#	tests/perf/netdev.sh [BUILD-FOLDER [ROUNDS]]
set -euo pipefail
. "$(dirname "$0")/beside_tcp.sh"
build=$(realpath "${1:-build}")
rounds=${2:-5}
begin uroce-net

# engines DRIVER: one in each namespace, on a core of its own, with its port active.
engines() {
	local core=0 ns
	for ns in "$a" "$b"; do
		ip netns exec "$ns" "$build/apps/uroced" --no-huge -l $core --file-prefix "$ns" -- --netdev wire \
			--netdev-driver "$1" --socket "$work/socket-$ns" >"$work/engine-$ns.log" 2>&1 &
		pids+=($!)
		core=$((core + 1))
	done
	for ns in "$a" "$b"; do
		await 20 "an engine with $1" bash -c "'$build/apps/uroce' run --quiet --socket \
			'$work/socket-$ns' -- ibv_devinfo | grep -q PORT_ACTIVE"
	done
}

# write_bw DRIVER SIZE MESSAGES: MiB/s
write_bw() {
	local test=(-- ib_write_bw -d uroce0 -x 1 -F -s "$2" -n "$3")
	engines "$1"
	ip netns exec "$a" "$build/apps/uroce" run --quiet --socket "$work/socket-$a" "${test[@]}" \
		>"$work/server.log" 2>&1 &
	pids+=($!)
	await 10 "ib_write_bw's server" bash -c "ip netns exec $a ss -ltn | grep -q :18515"
	ip netns exec "$b" "$build/apps/uroce" run --quiet --socket "$work/socket-$b" "${test[@]}" 10.61.0.1 |
		awk -v size="$2" '$1 == size { print $4 }'
}

tcp_beside() {
	engines af_xdp
	tcp 2 10.61.0.2
}

# measure NAME COMMAND...
measure() {
	local name=$1
	shift
	"$@" >>"$work/$name"
	forget
}
median() {
	sort -n "$work/$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
# row TITLE NAME REFERENCE
row() {
	local m r
	m=$(median "$2")
	r=$(median "$3")
	printf '%-48s %8s  %5s  (%s to %s)\n' "$1" "$m" "$(awk "BEGIN { printf \"%.2f\", $m / $r }")" \
		"$(sort -n "$work/$2" | head -1)" "$(sort -n "$work/$2" | tail -1)"
}

for mtu in 1500 3400; do
	ip -n "$a" link set wire mtu $mtu
	ip -n "$b" link set wire mtu $mtu
	rm -f "$work"/m-*
	for ((round = 0; round < rounds; round++)); do
		measure m-packet write_bw af_packet 65536 2000
		measure m-xdp write_bw af_xdp 65536 2000
		measure m-packet8 write_bw af_packet 8 50000
		measure m-xdp8 write_bw af_xdp 8 50000
		measure m-tcp tcp 2 10.61.0.2
		measure m-beside tcp_beside
	done
	printf '%-48s %8s  %5s\n' "veth, MTU $mtu" "MiB/s" "ratio"
	row "ib_write_bw 64 KiB, af_packet" m-packet m-packet
	row "ib_write_bw 64 KiB, af_xdp" m-xdp m-packet
	row "ib_write_bw 8 octets, af_packet" m-packet8 m-packet8
	row "ib_write_bw 8 octets, af_xdp" m-xdp8 m-packet8
	row "TCP, with segmentation offload" m-tcp m-packet
	row "TCP beside af_xdp, without it" m-beside m-packet
done
