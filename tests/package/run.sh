#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian packages of the last commit, installs them into a fresh Debian 12, and runs there
# what a user would: perftest on `uroce run`, and the examples, compiled against liburoce-dev. Takes about
# ten minutes. As root.
#	tests/package/run.sh [FOLDER]	FOLDER keeps packages and log; default: a temporary one
set -euo pipefail
cd "$(dirname "$0")/../.."

[ "$(id -u)" -eq 0 ] || { echo "a chroot needs root" >&2; exit 77; }
needed=(debhelper debootstrap lintian fakeroot)
missing=()
for name in "${needed[@]}"; do
	dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q '^install ok installed' || missing+=("$name")
done
if [ ${#missing[@]} -gt 0 ]; then
	apt-get -qq update
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${missing[@]}" >/dev/null
fi

work=$(mktemp -d /var/tmp/uroce-package-XXXXXX)
keep=${1-$work/packages}
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir -p "$keep"
passed=0
failed=0

# check NAME COMMAND...: one line, and what the command said if it failed.
check() {
	local name=$1
	shift
	if "$@" >"$keep/$name.log" 2>&1; then
		passed=$((passed + 1))
		echo "ok $name"
	else
		failed=$((failed + 1))
		echo "FAILED: $name"
		tail -20 "$keep/$name.log"
	fi
}

build() {
	git archive HEAD --prefix=uroce/ | tar -x -C "$work"
	(cd "$work/uroce" && DEB_BUILD_OPTIONS=parallel=$(nproc) dpkg-buildpackage -b -us -uc)
	mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$keep"
}

lint() {
	lintian --fail-on error,warning --allow-root \
		"$keep"/*.changes
}

# The mirror of this host. With one it has a signature; packages are not downloaded twice.
bootstrap() {
	local mirror
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -1)
	debootstrap --variant=minbase --components=main bookworm "$root" "$mirror"
	rm -f "$root/etc/apt/sources.list"
	if [ -s /etc/apt/sources.list ]; then cp /etc/apt/sources.list "$root/etc/apt/"; fi
	cp -a /etc/apt/sources.list.d/. "$root/etc/apt/sources.list.d/" 2>/dev/null || true
	cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
	cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
}

# inside COMMAND: in the chroot, whose mounts and processes end with the command.
inside() {
	unshare --mount --pid --fork --kill-child bash -c '
		mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" &&
		mount --rbind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/run" &&
		exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 /bin/bash -euc "$1"' "$root" "$1"
}

install_packages() {
	mkdir -p "$root/packages"
	cp "$keep"/*.deb "$root/packages"
	rm -f "$root"/packages/*dbgsym*
	inside 'apt-get -qq update
		apt-get -qq -y --no-install-recommends install /packages/*.deb perftest ibverbs-utils gcc libc6-dev \
			make pkgconf >/dev/null'
}

system_libraries_stay() {
	inside 'test -z "$(ldconfig -p | grep /uroce/)"
		ldd /usr/bin/ib_write_bw | grep "libibverbs.so.1 => /lib/x86_64-linux-gnu/libibverbs.so.1"
		! ls /usr/lib/x86_64-linux-gnu/libibverbs.so.1 | grep uroce
		dpkg -S /usr/lib/x86_64-linux-gnu/uroce/libibverbs.so.1'
}

write_bw() {
	inside 'uroce run -- ib_write_bw -d uroce0 -x 1 -F -n 500 >/tmp/server.log 2>&1 &
		for i in $(seq 300); do grep -qE ":4853 .* 0A " /proc/net/tcp* && break; sleep 0.1; done # port 18515
		uroce run -- ib_write_bw -d uroce0 -x 1 -F -n 500 127.0.0.1
		wait; cat /tmp/server.log; uroce stat | head -3'
}

examples() {
	inside 'cp -r /usr/share/doc/liburoce-dev/examples /tmp/examples
		for folder in smallest forward kv; do make -C /tmp/examples/$folder; done
		cd /tmp/examples
		smallest/smallest --no-huge -m 256 --no-pci | grep "hello, myself"
		kv/kv-server "--lcores=0@(0-1)" --no-huge -m 256 --no-pci -- --socket /tmp/kv.sock >/tmp/kv.log &
		for i in $(seq 300); do grep -q ready /tmp/kv.log && break; sleep 0.1; done
		export UROCE_SOCKET=/tmp/kv.sock
		uroce run -- kv/kv 127.0.0.1 put colour blue
		test "$(uroce run --quiet -- kv/kv 127.0.0.1 get colour)" = blue
		kill %1; wait'
}

manuals() {
	inside 'apt-get -qq -y --no-install-recommends install man-db >/dev/null 2>&1
		for page in uroce.1 uroce-doctor.1 uroce-ping.1 uroce-perf.1 uroced.8 uroced.conf.5 uroce_create.3 uroce_wants.3; do
			name=${page%.*}; man -w "${page##*.}" "$name"; done'
}

removal() {
	inside 'apt-get -qq -y purge uroced uroce-tools libibverbs1-uroce librdmacm1-uroce liburoce1 liburoce-dev
		test ! -e /usr/bin/uroce; test ! -e /etc/uroce; test ! -e /usr/lib/x86_64-linux-gnu/uroce'
}

check build build
check lintian lint
check debootstrap bootstrap
check install install_packages
check system-libraries-stay system_libraries_stay
check write_bw write_bw
check examples examples
check manuals manuals
check removal removal
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
