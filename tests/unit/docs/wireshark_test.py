#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""docs/wireshark/uroce.lua in tshark, over frames that are written out here by hand, field by field."""

import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "docs/wireshark/uroce.lua"
FIELDS = ["uroce.knows_selective", "uroce.sack.psn", "uroce.sack.syndrome", "uroce.sack.msn",
          "uroce.sack.held", "uroce.sack.count"]


def frame(roce):
    """Ethernet, IPv4 and UDP 4791 around the given octets, and an ICRC that no reader checks here."""
    udp = struct.pack("!HHHH", 0xC123, 4791, 8 + len(roce) + 4, 0) + roce + bytes(4)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 2, 20 + len(udp), 1, 0x4000, 64, 17, 0,
                     bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    return bytes(12) + b"\x08\x00" + ip + udp


def bth(opcode, reserved, psn):
    return struct.pack("!BBHII", opcode, 0x40, 0xFFFF, reserved << 24 | 0xA11, psn)


def pcap(frames):
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack("<IIII", 0, 0, len(x), len(x)) + x for x in frames)


selection = bytearray(32)
selection[0] = 0x02  # bit 1: PSN + 2
selection[1] = 0x04  # bit 10: PSN + 11
selection[31] = 0x80  # bit 255: PSN + 256
CASES = [
    # a selective acknowledgement, across the wrap
    (bth(0xD1, 1, 0xFFFFFD) + b"\x1f\x00\x00\x07" + bytes(selection),
     ["1", "16777213", "0x1f", "7", "16777215,8,253", "3"]),
    # one whose selection begins 2 * 64 packets further on
    (bth(0xD1, 1, 0x02000005) + b"\x1f\x00\x00\x07" + bytes(selection),
     ["1", "5", "0x1f", "7", "135,144,389", "3"]),
    # an acknowledgement of one that knows them, and of one that does not
    (bth(0x11, 1, 5) + b"\x1f\x00\x00\x01", ["1", "", "", "", "", ""]),
    (bth(0x11, 0, 5) + b"\x1f\x00\x00\x01", ["0", "", "", "", "", ""]),
    # one that ends too early
    (bth(0xD1, 1, 5) + b"\x1f\x00\x00\x07" + bytes(8), ["1", "", "", "", "", ""]),
]


def main():
    if shutil.which("tshark") is None:
        print("tshark is not installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        capture = pathlib.Path(folder) / "frames.pcap"
        capture.write_bytes(pcap([frame(roce) for roce, _ in CASES]))
        words = ["tshark", "-X", f"lua_script:{SCRIPT}", "-r", capture, "-T", "fields"]
        for field in FIELDS:
            words += ["-e", field]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    found = [line.split("\t") for line in done.stdout.splitlines()]
    wanted = [fields for _, fields in CASES]
    # Versions of tshark say a boolean as 1 or as True.
    found = [[{"True": "1", "False": "0"}.get(x, x) for x in fields] for fields in found]
    if found != wanted:
        print(f"tshark reads {found}\nwanted       {wanted}\n{done.stderr}")
        return 1
    return 0


sys.exit(main())
