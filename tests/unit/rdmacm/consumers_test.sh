#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs and libraries that Debian built against its own librdmacm load with ours, with all symbols
# bound at load time.
# usage: consumers_test.sh FOLDER-OF-LIBIBVERBS FOLDER-OF-LIBRDMACM
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export UROCE_SOCKET="$work/nobody.sock" LD_LIBRARY_PATH="$1:$2" LD_BIND_NOW=1
libraries=/usr/lib/x86_64-linux-gnu
tried=0
lacks() {
	echo "[SKIP] $1: not installed"
}

# ldd with immediate binding lists missing symbols
for name in rping ucmatose udaddy mckey cmtime rdma_server rdma_client rdma_xserver rdma_xclient \
	rcopy rstream riostream udpong ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw qperf \
	$libraries/rsocket/librspreload.so.1.0.0 $libraries/libfabric.so.1 \
	$libraries/ucx/libuct_rdmacm.so.0; do
	path=$(command -v "$name") || path=$name
	[ -e "$path" ] || { lacks "$name"; continue; }
	tried=$((tried + 1))
	ldd -r "$path" >"$work/out" 2>&1 || :
	if grep -E 'undefined symbol: (rdma_|ibv_|r[a-z]* )|librdmacm.* not found' "$work/out"; then
		echo "$name does not load"
		exit 1
	fi
	grep -q "$2/librdmacm.so.1" "$work/out" ||
		{ echo "$name did not load our library"; cat "$work/out"; exit 1; }
done
if /usr/bin/python3 -c 'import pyverbs' 2>/dev/null; then
	tried=$((tried + 1))
	timeout 20 /usr/bin/python3 -c 'import pyverbs.cmid'
else
	lacks pyverbs
fi
if [ "$tried" -eq 0 ]; then
	echo "no program of rdmacm-utils, perftest or pyverbs is installed"
	exit 77
fi
echo "$tried programs and libraries load"
