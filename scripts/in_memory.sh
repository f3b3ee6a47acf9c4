#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a command that has /tmp and DPDK's folder in memory, of its own: ./scripts/in_memory.sh COMMAND...
# Tests make and remove many small files: sockets, and some fifty of each engine's device. ext4 takes no inode
# again for five seconds after it was freed, and looks at each of these for every new file. The mounts go away with
# the command. The current folder may be in /tmp. Without the right to mount, the command runs all the same.
set -euo pipefail
if [ "${1-}" != --mount ]; then
	if [ "$(id -u)" -ne 0 ] || ! unshare --mount mount -t tmpfs tmpfs /tmp 2>/dev/null; then
		exec "$@"
	fi
	exec unshare --mount --propagation private "$0" --mount "$@"
fi
shift
here=$(pwd -P)
mount -t tmpfs -o mode=1777 tmpfs /tmp
if [ "${here#/tmp/}" != "$here" ]; then
	mkdir -p "$here"
	mount --no-canonicalize --bind . "$here" # "." is the folder below the mount of /tmp
	cd "$here"
fi
mkdir -p /var/run/dpdk
mount -t tmpfs -o mode=700 tmpfs /var/run/dpdk
exec "$@"
