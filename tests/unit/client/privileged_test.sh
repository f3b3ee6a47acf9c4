#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A program with more rights than its caller looks only for the system's engine. Otherwise its caller could
# name any process to get access to its memory. usage: privileged_test.sh WHERE
set -eu
if [ "$(id -u)" -ne 0 ]; then
	echo "it takes root to make such programs"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 711 "$work"
mkdir -m 700 "$work/runtime"
mkdir "$work/runtime/uroce"
chown -R 65534:65534 "$work/runtime"

# look WANTED PROGRAM [COMMAND...]: what PROGRAM prints when COMMAND runs it for another user
look() {
	wanted=$1
	program=$2
	shift 2
	got=$(env UROCE_SOCKET="$work/named" XDG_RUNTIME_DIR="$work/runtime" \
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@" "$program")
	if [ "$got" != "$wanted" ]; then
		echo "$program looks at $got, not at $wanted"
		exit 1
	fi
}

for name in ordinary setuid capable; do
	cp "$1" "$work/$name"
	chmod 755 "$work/$name"
done
look "$work/named" "$work/ordinary"
chmod 4755 "$work/setuid"
look /run/uroce/uroced.sock "$work/setuid"
if ! setcap cap_net_raw+ep "$work/capable"; then
	echo "[SKIP] a program with a capability: no capabilities of files can be set here"
	exit 0
fi
look /run/uroce/uroced.sock "$work/capable"
# nor in its own folder, which also belongs to its caller
look /run/uroce/uroced.sock "$work/capable" env -u UROCE_SOCKET
look /run/uroce/uroced.sock "$work/capable" env -u UROCE_SOCKET -u XDG_RUNTIME_DIR
