#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Recompute the ICRC of every RoCEv2 frame in pcap or pcapng files (Ethernet, raw IP is not read).

usage: verify_icrc.py [-v] CAPTURE...
exit status: 0 all right, 1 a wrong ICRC or no RoCEv2 frame at all, 2 a file that cannot be read
"""

import struct
import sys
import zlib

ROCE_PORT = 4791
ETHERNET = 1


class Damaged(Exception):
    pass


def frames_of_pcap(data):
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<",
             b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}[data[:4]]
    if struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF != ETHERNET:
        raise Damaged("not an Ethernet capture")
    at = 24
    while at + 16 <= len(data):
        captured, original = struct.unpack_from(order + "II", data, at + 8)
        at += 16
        if at + captured > len(data):
            raise Damaged("the last record is cut short")
        yield data[at:at + captured], original
        at += captured


def frames_of_pcapng(data):
    at, order, links = 0, "<", []
    while at + 12 <= len(data):
        if data[at:at + 4] == b"\x0a\x0d\x0d\x0a":  # section header: the only block of both orders
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, size = struct.unpack_from(order + "II", data, at)
        if size < 12 or size % 4 or at + size > len(data):
            raise Damaged("a block with an impossible length")
        body = data[at + 8:at + size - 4]
        if kind == 1:  # interface description
            links.append(struct.unpack_from(order + "H", body)[0])
        elif kind == 6:  # enhanced packet
            interface, _, _, captured, original = struct.unpack_from(order + "5I", body)
            if interface < len(links) and links[interface] == ETHERNET:
                yield body[20:20 + captured], original
        elif kind == 3 and links and links[0] == ETHERNET:  # simple packet
            original = struct.unpack_from(order + "I", body)[0]
            yield body[4:4 + original], original
        at += size


def frames_of(path):
    with open(path, "rb") as capture:
        data = capture.read()
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        return frames_of_pcapng(data)
    if len(data) >= 24 and data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1",
                                        b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"):
        return frames_of_pcap(data)
    raise Damaged("neither pcap nor pcapng")


def datagram(frame):
    """(IP packet up to its own end, length of the IP header), or None if it is not RoCEv2."""
    at = 12
    while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    kind, ip = frame[at:at + 2], frame[at + 2:]
    if kind == b"\x08\x00" and len(ip) >= 20:
        header, total, protocol = (ip[0] & 15) * 4, struct.unpack_from("!H", ip, 2)[0], ip[9]
        if struct.unpack_from("!H", ip, 6)[0] & 0x1FFF:
            return None
    elif kind == b"\x86\xdd" and len(ip) >= 40:
        header, total, protocol = 40, 40 + struct.unpack_from("!H", ip, 4)[0], ip[6]
    else:
        return None
    if protocol != 17 or len(ip) < header + 8:
        return None
    if struct.unpack_from("!H", ip, header + 2)[0] != ROCE_PORT:
        return None
    return ip[:total], header


def icrc_of(ip, header):
    """IBTA A17.3.3: variant fields read as ones, eight octets of ones in front."""
    ones = bytearray(ip[:-4])
    variant = [1, 8, 10, 11] if ip[0] >> 4 == 4 else [1, 2, 3, 7]
    variant += [header + 6, header + 7, header + 8 + 4]
    for octet in variant:
        ones[octet] = 0xFF
    if ip[0] >> 4 == 6:
        ones[0] |= 0x0F
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(ones)))


def verify(path, verbose):
    right = wrong = cut = other = 0
    for number, (frame, original) in enumerate(frames_of(path), 1):
        found = datagram(frame)
        if found is None:
            other += 1
            continue
        ip, header = found
        if len(frame) < original:
            cut += 1
            continue
        want, got = icrc_of(ip, header), ip[-4:]
        if len(ip) >= header + 24 and want == got:
            right += 1
            continue
        wrong += 1
        if verbose or wrong <= 10:
            print(f"{path}: frame {number}: ICRC {got.hex()}, should be {want.hex()}")
    print(f"{path}: {right} right, {wrong} wrong, {cut} captured in part, {other} not RoCEv2")
    return wrong == 0 and right > 0


def main(arguments):
    verbose = "-v" in arguments
    paths = [a for a in arguments if a != "-v"]
    if not paths:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    good = True
    for path in paths:
        try:
            good = verify(path, verbose) and good
        except (OSError, Damaged, struct.error) as why:
            print(f"{path}: {why}", file=sys.stderr)
            return 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
