#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program while frames come to the interface "wire0" of with_netdev.sh and its MAC address changes.

The lcores look at the address for each frame, the control thread reads the new one, and the thread sanitizer
says whether both may. Exits with the program's status. usage: interface_changes.py PROGRAM [ARGUMENT...]
"""

import socket
import struct
import subprocess
import sys
import time

CHANGES = 5
PAUSE = 0.25  # the control thread looks ten times a second


def frame():
    """A UDP datagram to port 4791, which everything lets through that looks for RoCE, with no packet in it."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 60, 0, 0, 64, 17, 0, bytes((10, 77, 0, 2)), bytes((10, 77, 0, 1)))
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack("!H", ~total & 0xffff) + ip[12:]
    udp = struct.pack("!HHHH", 49152, 4791, 40, 0) + bytes(32)
    return b"\xff" * 6 + bytes((2, 0, 0, 0, 0, 9)) + b"\x08\x00" + ip + udp


def change(number):
    subprocess.run(["ip", "link", "set", "wire0", "address", f"02:00:00:00:01:{number:02x}"], check=True)


def main():
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    wire.bind(("wire1", 0))
    with subprocess.Popen(sys.argv[1:]) as program:  # waits for it, whatever happens
        for number in range(CHANGES):
            change(number)
            end = time.monotonic() + PAUSE
            while time.monotonic() < end:
                wire.send(frame())
                time.sleep(0.005)
    return program.returncode


if __name__ == "__main__":
    sys.exit(main())
