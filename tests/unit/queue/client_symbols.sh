#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fails when the client's side of the rings has undefined symbols of DPDK.
set -eu
symbols=$(nm "$1")
case "$symbols" in
*doorbell_wake*) ;;
*) echo "$1 does not hold doorbell_wake: not the library that was meant"; exit 1 ;;
esac
if echo "$symbols" | grep ' U rte_'; then
	echo "$1 would need DPDK at run time"
	exit 1
fi
