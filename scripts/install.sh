# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by try and check, which run in the root of the checkout.

# as_root COMMAND...: the command as root, by sudo for an ordinary user.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "this needs root, and there is no sudo: $*" >&2
		return 1
	fi
}

# missing_packages KIND...: those of scripts/packages.txt that are not installed.
missing_packages() {
	local kind name
	while read -r kind name; do
		case " $* " in
		*" $kind "*)
			dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q '^install ok installed' ||
				echo "$name"
			;;
		esac
	done < <(grep -v '^#' scripts/packages.txt)
}

# install_packages KIND...: installs what is missing; touches nothing if nothing is.
install_packages() {
	local missing
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	if ! command -v apt-get >/dev/null; then
		echo "please install (names of Debian 12):" $missing >&2
		return 1
	fi
	echo "installing:" $missing
	# tshark asks who may capture; the answer that changes nothing is taken.
	export DEBIAN_FRONTEND=noninteractive
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
		-o Dpkg::Use-Pty=0 install $missing >/dev/null
}

# configure FOLDER OPTIONS...: a meson build that may be there already.
configure() {
	local folder=$1
	shift
	if [ -f "$folder/build.ninja" ]; then
		meson configure "$folder" "$@" >/dev/null
	else
		meson setup "$folder" "$@" >"$folder.log" 2>&1 || {
			tail -20 "$folder.log" >&2
			return 1
		}
		rm -f "$folder.log"
	fi
}
