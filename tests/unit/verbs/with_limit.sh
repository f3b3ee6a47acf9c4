#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program with an engine whose control group may have $UROCED_MEMORY octets of memory. The program is in
# the group of this script. $UROCED_CGROUP is the folder of the engine's.
# usage: with_limit.sh UROCED PROGRAM [ARGUMENT...]
set -eu

. "$(dirname "$0")/beside_engine.sh"
chmod 711 "$work"
for hierarchy in "/sys/fs/cgroup memory.max" "/sys/fs/cgroup/memory memory.limit_in_bytes"; do
	group="${hierarchy% *}/uroce-test-$$"
	mkdir "$group" 2>/dev/null || continue
	[ -f "$group/${hierarchy#* }" ] && break
	rmdir "$group"
done
if [ ! -d "$group" ] || ! echo "$UROCED_MEMORY" >"$group/${hierarchy#* }"; then
	rm -rf "$work"
	echo "needs to make control groups with a limit of memory"
	exit 77
fi
export UROCED_CGROUP="$group"
uroced=$1
shift
trap 'rmdir "$group"' EXIT
start_engine sh -c 'echo $$ >"$UROCED_CGROUP/cgroup.procs" && exec "$@"' sh \
	"$uroced" --no-huge -m 32 -- --socket "$UROCE_SOCKET" --socket-mode 0666 --ip 127.0.0.1/8
trap 'kill $engine 2>/dev/null || :; wait $engine 2>/dev/null || :; rm -rf "$work"; rmdir "$group"' EXIT
run_beside "$@"
