#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""
Captures the RoCEv2 packets of an interface, one JSON list per packet, until SIGTERM:
    capture.py IFACE FILE       SIGTERM: writes the packets seen until then to FILE and ends
A line: [source address, opcode, destination queue pair, PSN, migrated, acknowledge request,
         UDP source port, UDP checksum, syndrome of an AETH or null, MSN or null, length of the
         datagram, length that a RETH names or null]
"""

import json
import signal
import socket
import struct
import sys

SO_RCVBUFFORCE = 33
RETH = (0x06, 0x0a, 0x0b, 0x0c)
AETH = (0x0d, 0x0f, 0x10, 0x11, 0x12)


def read(frame):
    """None: not a RoCEv2 packet."""
    at, kind = 14, frame[12:14]
    if kind == b"\x81\x00":
        at, kind = 18, frame[16:18]
    if kind == b"\x08\x00" and frame[at + 9] == 17:
        source = socket.inet_ntop(socket.AF_INET, frame[at + 12:at + 16])
        at += 20
    elif kind == b"\x86\xdd" and frame[at + 6] == 17:
        source = socket.inet_ntop(socket.AF_INET6, frame[at + 8:at + 24])
        at += 40
    else:
        return None
    sport, dport, length, checksum = struct.unpack_from(">HHHH", frame, at)
    if dport != 4791:
        return None
    opcode, flags, _, qpn, psn = struct.unpack_from(">BBHII", frame, at + 8)
    aeth = struct.unpack_from(">I", frame, at + 20)[0] if opcode in AETH else None
    return [source, opcode, qpn & 0xffffff, psn & 0xffffff, flags >> 6 & 1, psn >> 31, sport,
            checksum, None if aeth is None else aeth >> 24,
            None if aeth is None else aeth & 0xffffff, length,
            struct.unpack_from(">I", frame, at + 32)[0] if opcode in RETH else None]


def main():
    iface, file = sys.argv[1:]
    seen = []
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
    packets.bind((iface, 0))
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    packets.settimeout(0.2)
    print("captures", flush=True)
    while True:
        try:
            seen.append(packets.recv(128))
        except TimeoutError:
            if ended:
                break
    with open(file, "w") as out:
        for frame in seen:
            row = read(frame)
            if row:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
