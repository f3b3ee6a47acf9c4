#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""embed.py OBJECT SOURCE: writes OBJECT's octets into a C file, as xdp_object and xdp_object_octets."""
import sys

with open(sys.argv[1], "rb") as file:
    octets = file.read()
with open(sys.argv[2], "w", encoding="ascii") as file:
    file.write('#include "drivers/xdp/object.h"\n\nconst unsigned char xdp_object[] = {\n')
    for i in range(0, len(octets), 16):
        file.write("\t" + " ".join("0x%02x," % octet for octet in octets[i:i + 16]) + "\n")
    file.write("};\nconst unsigned int xdp_object_octets = sizeof(xdp_object);\n")
