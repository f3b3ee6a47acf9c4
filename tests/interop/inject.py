#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""
Sends congestion notification packets (CNPs), like a NIC that received a congestion mark:
    inject.py IFACE DESTINATION-MAC SOURCE-ADDRESS DESTINATION-ADDRESS QPN COUNT [UDP-CHECKSUM]
"""

import socket
import struct
import sys
import zlib


def ip_sum(header):
    words = sum(struct.unpack(">10H", header))
    while words >> 16:
        words = (words & 0xffff) + (words >> 16)
    return ~words & 0xffff


def ipv4(source, destination, length):
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0xc0, length, 0, 0x4000, 64, 17, 0,
                         socket.inet_aton(source), socket.inet_aton(destination))
    return header[:10] + struct.pack(">H", ip_sum(header)) + header[12:]


def cnp(source, destination, qpn, checksum):
    """IPv4 and the rest; the ICRC excludes fields that routers change."""
    bth = struct.pack(">BBHII", 0x81, 0, 0xffff, 0x40000000 | qpn, 0) + bytes(16)
    udp = struct.pack(">HHHH", 0xc000, 4791, 8 + len(bth) + 4, checksum)
    ip = ipv4(source, destination, 20 + len(udp) + len(bth) + 4)
    masked = bytearray(b"\xff" * 8 + ip + udp + bth)
    for at in (9, 16, 18, 19, 34, 35, 40):  # TOS, TTL, checksums, FECN and BECN
        masked[at] = 0xff
    return ip + udp + bth + struct.pack("<I", zlib.crc32(masked))


def main():
    iface, mac, source, destination, qpn, count, checksum = (*sys.argv[1:], "0")[:7]
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((iface, 0))
    frame = (bytes.fromhex(mac.replace(":", "")) + out.getsockname()[4] + b"\x08\x00" +
             cnp(source, destination, int(qpn, 0), int(checksum, 0)))
    for _ in range(int(count)):
        out.send(frame)


if __name__ == "__main__":
    main()
