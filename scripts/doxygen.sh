#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Writes the reference of liburoce into FOLDER/html: Doxygen, with docs/Doxyfile.
#	scripts/doxygen.sh FOLDER
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: scripts/doxygen.sh FOLDER" >&2; exit 2; }
command -v doxygen >/dev/null || { echo "doxygen is not installed: apt-get install doxygen" >&2; exit 77; }
mkdir -p "$1"
UROCE_OUTPUT=$(realpath "$1")
export UROCE_OUTPUT
cd "$(dirname "$0")/.."
UROCE_VERSION=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
export UROCE_VERSION
doxygen docs/Doxyfile
