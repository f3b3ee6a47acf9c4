#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The compiler of run.py's build. The code under test counts which lines run, and compiles quickly; tests
# are compiled as in every build, so that ccache has them. Programs link quickly: each mutant links some.
# Warnings are not errors here: without optimisation gcc has others.
case " $* " in
*' -c ../lib/'* | *' -c ../drivers/'*) set -- "$@" -O0 -g0 -Wno-error --coverage -fprofile-update=atomic ;;
*' -c '* | *' -E '* | *' --version '*) ;;
*)
	set -- "$@" --coverage
	command -v ld.lld >/dev/null && set -- "$@" -fuse-ld=lld
	;;
esac
if command -v ccache >/dev/null; then
	exec ccache cc "$@"
fi
exec cc "$@"
