#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves small functions for all inputs within the bounds that each proof states, with Frama-C.
#	tests/proof/run.sh [NAME...]	all proofs, or those whose name begins so
# Needs frama-c-base, and for `contract` why3 and z3 (Debian 12 has all of them). Each proof has five
# minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work # why3's configuration
failed=0
missing=()
for program in frama-c why3 z3; do
	command -v "$program" >/dev/null || missing+=("$program")
done
if [ ${#missing[@]} -gt 0 ]; then
	echo "not installed: ${missing[*]} (apt-get install frama-c-base why3 z3)"
	exit 77
fi
why3 config detect >/dev/null 2>&1

frama() {
	timeout 300 frama-c -machdep gcc_x86_64 -c11 -no-unicode \
		-cpp-extra-args='-Ilib -I. -Itests/proof -Itests/proof/include -include stub.h' \
		"$@" >"$work/log" 2>&1
}

# verdict NAME STATUS SECONDS: a line, and what was not proved.
verdict() {
	if [ "$2" -eq 0 ]; then
		printf '%-24s proved in %s s\n' "$1" "$3"
	else
		printf '%-24s NOT PROVED in %s s\n' "$1" "$3"
		grep -A 3 -E 'eva:alarm|got status|Goal .* : |error|User Error|[Tt]ime' "$work/log" |
			grep -v 'Valid' | head -40 || true
		failed=1
	fi
}

wanted() {
	local prefix
	[ ${#names[@]} -gt 0 ] || return 0
	for prefix in "${names[@]}"; do
		[[ $1 != "$prefix"* ]] || return 0
	done
	return 1
}

# values FILE FUNCTION PRECISION STATES SPLIT [SOURCES...]: by Eva, from that function on. No alarm, each
# assertion valid, and the end is reached. At most STATES are kept apart at a place; SPLIT says by the
# results of which functions.
values() {
	local name=$1/$2 main=$2 file=tests/proof/$1.c from=$SECONDS status=0
	local options=(-eva-precision "$3" -eva-slevel "$4" -eva-interprocedural-splits -eva-split-limit 300)
	case $5 in
	none) ;;
	full) options+=(-eva-split-return full) ;;
	*) options+=(-eva-split-return-function "$5") ;;
	esac
	wanted "$name" || return 0
	shift 5
	frama -eva -eva-no-show-progress "${options[@]}" -main "$main" "$file" "$@" || status=1
	if grep -qE 'eva:alarm\]|got status (unknown|invalid)' "$work/log" ||
		! grep -q 'Frama_C_show_each_proved: {1}' "$work/log"; then
		status=1
	fi
	verdict "$name" "$status" $((SECONDS - from))
}

# contract FILE FUNCTIONS INLINED: by WP and z3, every goal, accesses and overflows included.
contract() {
	local name=$1/contracts file=tests/proof/$1.c from=$SECONDS status=0
	wanted "$name" || return 0
	frama "$file" -inline-calls "$3" -wp -wp-rte -wp-fct "$2" -wp-prover z3 -wp-timeout 60 || status=1
	if ! grep -qE 'Proved goals: +([0-9]+) / \1$' "$work/log"; then
		status=1
	fi
	verdict "$name" "$status" $((SECONDS - from))
}

# enumeration FILE: a program that tries every case.
enumeration() {
	local from=$SECONDS status=0
	wanted "$1" || return 0
	{ gcc -O2 -Ilib -I. -o "$work/program" "tests/proof/$1.c" && "$work/program"; } >"$work/log" 2>&1 ||
		status=1
	verdict "$1" "$status" $((SECONDS - from))
}

names=("$@")
wire=(lib/wire/opcode.c lib/wire/icrc.c)
enumeration psn
values frames any_frame 1 500 envelope:0,ethernet:0,ipv4:0,ipv6:0,udp:0 "${wire[@]}"
values frames any_headers 1 500 bth:0 "${wire[@]}"
values frames any_icrc 0 10000 full "${wire[@]}"
values keys any_secret 0 0 none
values keys any_key 0 10000 full
contract keys range_contract,inside_contract range_in_region,range_inside
values rings any_ring 0 10000 full
values rings any_doorbell 0 10000 full
values cm any_length 0 10000 full
values cm any_mad 0 10000 full
values cm any_ip_header 0 10000 full
values rs_wire any_greeting 0 10000 full
values rs_wire any_datagram 0 10000 full
contract rs_flow announce,next,take,grant,pieces_of,sent \
	rs_inflow_announce,rs_inflow_next,rs_inflow_take,rs_inflow_grant,rs_outflow_pieces,rs_outflow_sent,rs_inflow_pass,rs_inflow_waits,next_place
exit "$failed"
