#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs that Debian built against its own libibverbs load with ours, every symbol bound at once.
# There is no engine: they find no device and report that.
# usage: consumers_test.sh FOLDER-OF-THE-LIBRARY
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export UROCE_SOCKET="$work/nobody.sock" LD_LIBRARY_PATH="$1" LD_BIND_NOW=1
tried=0
lacks() {
	echo "[SKIP] $1: it is not installed"
}

# ldd with immediate binding reports every missing symbol
for program in ibv_devices ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong \
	ibv_srq_pingpong ibv_xsrq_pingpong ibv_asyncwatch ib_write_bw ib_write_lat ib_read_bw \
	ib_read_lat ib_send_bw ib_send_lat ib_atomic_bw ib_atomic_lat rping ucmatose; do
	path=$(command -v "$program") || { lacks "$program"; continue; }
	tried=$((tried + 1))
	ldd -r "$path" >"$work/out" 2>&1
	if grep -E 'undefined symbol|not found' "$work/out"; then
		echo "$program does not load"
		exit 1
	fi
	grep -q "$1/libibverbs.so.1" "$work/out" ||
		{ echo "$program did not load our library"; cat "$work/out"; exit 1; }
done

if command -v ibv_devices >/dev/null; then
	timeout 20 ibv_devices >"$work/out"
	test "$(wc -l <"$work/out")" -eq 2 || { cat "$work/out"; exit 1; }
fi
if /usr/bin/python3 -c 'import pyverbs' 2>/dev/null; then
	tried=$((tried + 1))
	timeout 20 /usr/bin/python3 -c '
import pyverbs.device, pyverbs.qp, pyverbs.cq, pyverbs.mr, pyverbs.pd
import pyverbs.providers.mlx5.mlx5dv, pyverbs.providers.efa.efadv
assert pyverbs.device.get_device_list() == []'
else
	lacks pyverbs
fi
if [ "$tried" -eq 0 ]; then
	echo "no program of ibverbs-utils, perftest or pyverbs is installed"
	exit 77
fi
echo "$tried programs load"
