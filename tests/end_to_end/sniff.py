#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Writes the RoCEv2 frames that arrive at an interface into a pcap file, until SIGTERM:

    sniff.py INTERFACE MAC FILE

The file then contains every frame that had arrived. (dumpcap loses frames that the kernel has not
handed over yet, which may be those of the last quarter of a second.)
"""

import signal
import socket
import struct
import sys
import time

ROCE = struct.pack(">H", 4791)
SO_RCVBUFFORCE = 33


def is_roce(frame):
    if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_UDP:
        at = 14 + 4 * (frame[14] & 15)
    elif frame[12:14] == b"\x86\xdd" and frame[20] == socket.IPPROTO_UDP:
        at = 54
    else:
        return False
    return frame[at + 2:at + 4] == ROCE


def main():
    interface, mac, path = sys.argv[1:]
    to = bytes.fromhex(mac.replace(":", ""))
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    packets.bind((interface, 0))
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    packets.settimeout(0.05)
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))  # times in ns
        print("captures", flush=True)
        while True:
            last = bool(ended)
            try:
                frame = packets.recv(65535)
            except TimeoutError:
                if last:
                    break
                continue
            if frame[:6] == to and is_roce(frame):
                seconds, ns = divmod(time.time_ns(), 10 ** 9)
                out.write(struct.pack("<IIII", seconds, ns, len(frame), len(frame)) + frame)


if __name__ == "__main__":
    main()
