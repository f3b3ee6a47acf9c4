#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the seeds of the targets whose inputs are octets of a protocol: seeds.py FOLDER.

The rest of tests/fuzz/corpus is what libFuzzer found from them, minimised (run.sh --keep)."""
import pathlib
import socket
import struct
import sys

from scapy.all import (ARP, ICMP, IP, TCP, UDP, Dot1Q, Ether, ICMPv6EchoRequest, ICMPv6ND_NA,
                       ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6,
                       IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, Raw, RouterAlert, rdpcap)
from scapy.contrib.igmp import IGMP

OURS, HOST = '02:00:00:00:00:01', '02:00:00:00:00:02'
here = pathlib.Path(__file__).resolve().parent
folder = pathlib.Path(sys.argv[1])


def write(target, name, octets):
    at = folder / target
    at.mkdir(parents=True, exist_ok=True)
    (at / name).write_bytes(bytes(octets))


def frames_of_roce():
    """One of each opcode that the captures of tests/vectors have."""
    seen = {}
    for capture in ('all.pcap', 'rxe_sample.pcap'):
        for packet in rdpcap(str(here.parent / 'vectors' / capture)):
            octets = bytes(packet)
            at = 14 + 4 * (octets[12:14] == b'\x81\x00')
            v6 = octets[at] >> 4 == 6
            opcode = octets[at + (40 if v6 else 20) + 8]
            seen.setdefault((opcode, v6, at), octets)
    return seen


def decode():
    for (opcode, v6, at), octets in frames_of_roce().items():
        vlan = 2 if at == 18 else 0
        write('decode', f'seed-{opcode:02x}-v{6 if v6 else 4}-{at}', bytes([vlan]) + octets)


def neighbour_step(frame, what=6):
    """A frame as neighbour_fuzz.c takes it: the step, its length, its octets."""
    octets = bytes(frame)
    return bytes([what]) + struct.pack('<H', len(octets)) + octets


def neighbours():
    link6, ours6 = 'fe80::2', 'fe80::1'
    solicited = '33:33:ff:00:00:01'
    frames = {
        'arp-request': Ether(dst='ff:ff:ff:ff:ff:ff', src=HOST) /
        ARP(op=1, hwsrc=HOST, psrc='10.0.0.2', pdst='10.0.0.1'),
        'arp-reply': Ether(dst=OURS, src=HOST) /
        ARP(op=2, hwsrc=HOST, psrc='10.0.0.2', hwdst=OURS, pdst='10.0.0.1'),
        'echo': Ether(dst=OURS, src=HOST) / IP(src='10.0.0.2', dst='10.0.0.1') / ICMP() /
        Raw(b'echo this'),
        'echo6': Ether(dst=OURS, src=HOST) / IPv6(src=link6, dst=ours6) /
        ICMPv6EchoRequest(data=b'echo this'),
        'ns': Ether(dst=solicited, src=HOST) / IPv6(src=link6, dst='ff02::1:ff00:1', hlim=255) /
        ICMPv6ND_NS(tgt=ours6) / ICMPv6NDOptSrcLLAddr(lladdr=HOST),
        'na': Ether(dst=OURS, src=HOST) / IPv6(src=link6, dst=ours6, hlim=255) /
        ICMPv6ND_NA(tgt=link6, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=HOST),
        'igmp-general': Ether(dst='01:00:5e:00:00:01', src=HOST) /
        IP(src='10.0.0.9', dst='224.0.0.1', ttl=1, options=[]) / IGMP(type=0x11, mrcode=100),
        'igmp-group': Ether(dst='01:00:5e:00:00:01', src=HOST) /
        IP(src='10.0.0.9', dst='225.0.0.1', ttl=1) / IGMP(type=0x11, mrcode=10, gaddr='225.0.0.1') /
        Raw(b'\x02\x05\x00\x00'),
        'mld': Ether(dst='33:33:00:00:00:01', src=HOST) /
        IPv6(src=link6, dst='ff02::1', hlim=1, nh=0) / IPv6ExtHdrHopByHop(nh=58, options=[RouterAlert()]) /
        Raw(bytes([130, 0, 0, 0]) + struct.pack('>HH', 1000, 0) + bytes(16) + b'\x02\x05\x00\x00'),
        'mld1': Ether(dst='33:33:00:00:00:01', src=HOST) /
        IPv6(src=link6, dst='ff02::1:2', hlim=1, nh=0) /
        IPv6ExtHdrHopByHop(nh=58, options=[RouterAlert()]) /
        Raw(bytes([130, 0, 0, 0]) + struct.pack('>HH', 1000, 0) +
            socket.inet_pton(socket.AF_INET6, 'ff02::1:2')),
    }
    asks = b''.join(bytes([0, n]) for n in range(3, 8))
    joins = bytes([0x03, 0x13, 0x23, 0x33])
    later = bytes([0xa1, 2, 0xa1, 2])
    for name, frame in frames.items():
        write('neighbour', 'seed-' + name, b'\0' + asks + joins + neighbour_step(frame) + later)
    tagged = Ether(dst=OURS, src=HOST) / Dot1Q(vlan=5) / ARP(op=2, hwsrc=HOST, psrc='10.0.0.2',
                                                            hwdst=OURS, pdst='10.0.0.1')
    write('neighbour', 'seed-tagged', b'\1' + asks + neighbour_step(tagged) + later)


def netlink_message(kind, body, attributes):
    octets = body
    for number, value in attributes:
        length = 4 + len(value)
        octets += struct.pack('<HH', length, number) + value + bytes(-length % 4)
    return struct.pack('<IHHII', 16 + len(octets), kind, 0, 1, 0) + octets


def netlink():
    v4 = struct.pack('<BBHiHBB', socket.AF_INET, 0, 0, 3, 2, 0, 1)
    v6 = struct.pack('<BBHiHBB', socket.AF_INET6, 0, 0, 3, 2, 0, 1)
    mac = b'\2\0\0\0\0\7'
    ip4, ip6 = socket.inet_aton('10.0.0.2'), socket.inet_pton(socket.AF_INET6, 'fe80::2')
    route = bytes([socket.AF_INET, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0])
    messages = {
        'new4': netlink_message(28, v4, [(1, ip4), (2, mac)]),
        'new6': netlink_message(28, v6, [(1, ip6), (2, mac), (3, bytes(16))]),
        'del4': netlink_message(29, v4, [(1, ip4)]),
        'del6': netlink_message(29, v6, [(1, ip6), (2, mac)]),
        'route': netlink_message(24, route, [(1, ip4)]),
        'error': netlink_message(2, struct.pack('<i', -2) + bytes(16), []),
    }
    for name, octets in messages.items():
        write('netlink', 'seed-' + name, octets)
    write('netlink', 'seed-several', messages['new4'] + messages['route'] + messages['del6'])


def raw_frames():
    ether = Ether(dst=OURS, src=HOST)
    tcp = TCP(sport=1, dport=2, flags='PA')
    frames = {
        'tcp4': ether / IP(src='10.0.0.2', dst='10.0.0.1') / tcp / Raw(b'payload'),
        'udp4': ether / IP(src='10.0.0.2', dst='10.0.0.1') / UDP(sport=1, dport=4791) / Raw(b'x' * 9),
        'options4': ether / IP(src='10.0.0.2', dst='10.0.0.1', options=[RouterAlert4()]) / tcp,
        'fragment4': ether / IP(src='10.0.0.2', dst='10.0.0.1', frag=3) / Raw(b'x' * 20),
        'tcp6': ether / IPv6(src='fd00::2', dst='fd00::1') / tcp / Raw(b'payload'),
        'udp6': ether / IPv6(src='fd00::2', dst='fd00::1') / UDP(sport=1, dport=4791) / Raw(b'x'),
        'hop6': ether / IPv6(src='fd00::2', dst='fd00::1') /
        IPv6ExtHdrHopByHop(options=[RouterAlert()]) / UDP(sport=1, dport=2),
        'fragment6': ether / IPv6(src='fd00::2', dst='fd00::1') / IPv6ExtHdrFragment(offset=1, nh=17) /
        Raw(b'x' * 20),
        'tagged': ether / Dot1Q(vlan=7) / Dot1Q(vlan=8) / IP(src='10.0.0.2', dst='10.0.0.1') / tcp,
    }
    for name, frame in frames.items():
        octets = bytes(frame)
        rest = bytes([3, 0, 1, 63, 1, 0, 1, 0, 0, 63, 2, 0, 0, 0] + [1] * 10) + bytes(60)
        write('raw_frame', 'seed-frame-' + name,
              b'\3' + struct.pack('<H', len(octets)) + octets + rest)
    for name in ('tcp4', 'tcp6'):
        octets = bytes(frames[name])
        header = len(octets) - 7
        for what, packet, length in ((0, octets, header), (1, octets[14:], header - 14)):
            write('raw_frame', f'seed-tso-{what}-{name}',
                  bytes([what]) + struct.pack('<H', len(packet)) + packet +
                  bytes([2, 5, 0, 0, 0, length, 0]))
        write('raw_frame', f'seed-inner-{name}',
              b'\2' + struct.pack('<H', len(octets) - 10) + octets[12:14] + b'\0\0' + octets[14:])


def RouterAlert4():
    from scapy.layers.inet import IPOption_Router_Alert
    return IPOption_Router_Alert()


def options():
    lines = {
        'port': ['--port', 'p0', '--ip', '10.0.0.1/24,fd00::1/64', '--gateway', '10.0.0.254', '--vlan', '7'],
        'netdev': ['--netdev=eth0', '--mtu=4200', '--idle', 'spin', '--confine', 'off', '-i'],
        'socket': ['--socket', '/tmp/x', '--socket-mode', '0660', '--socket-group', '0',
                   '--exit-when-idle', '10'],
        'kernel': ['--port', 'p0', '--kernel-interface', 'k0', '--', '--help'],
        'eal': ['-l', '1', '--no-huge', '--file-prefix=x', '--lcores=0', '--', '--mtu', '1500'],
    }
    for name, words in lines.items():
        write('options', 'seed-' + name, '\0'.join(words).encode())
    example = (here.parent.parent / 'config' / 'uroced.conf').read_text()
    chosen = '\n'.join(line.removeprefix('# ') for line in example.splitlines()
                       if ' = ' in line and not line.startswith('# kernel'))
    write('options', 'seed-file', b'--idle=spin\1[uroced]\n' + chosen.encode() + b'\n')
    write('options', 'seed-file-short', b'-i\1# x\n[uroced]\nmtu = 1500\nip = 10.0.0.1/8\n[other]\na = b\n')


def doctor():
    def piece(number, text):
        return bytes([number]) + struct.pack('<H', len(text)) + text.encode()

    udp = '  sl  local_address\n  1: 00000000:12B7 00000000:0000 07 0:0 0:0 0 0 0 4711 2 0 0\n'
    machines = {
        'cpu': [(0, 'processor : 0\nflags : fpu pclmulqdq hypervisor\n'), (6, '2-3\n'),
                (7, '(null)\n'), (8, '0-7,9\n'), (9, 'schedutil\n'), (10, 'C6\n'), (11, '133\n')],
        'memory': [(12, '512\n'), (13, '100\n'), (14, '4-7\n'), (17, '1\n')],
        'port': [(22, '0x1003\n'), (23, '1\n'), (24, '25000\n'), (25, '1500\n'), (2, udp),
                 (15, 'eth0\n'), (5, '1\n')],
        'slot': [(18, '8.0 GT/s PCIe\n'), (19, '16.0 GT/s PCIe\n'), (20, '8\n'), (21, '16\n'),
                 (16, 'vfio-noiommu\n')],
        'locks': [(1, '1: FLOCK  ADVISORY  WRITE 31 00:1a:77 0 EOF\n'), (4, 'uroced\n'), (3, udp)],
    }
    for name, files in machines.items():
        write('doctor', 'seed-' + name, b''.join(piece(*f) for f in files))


def rsockets():
    greeting = bytes([1, 2, 0, 8, 0, 0, 0, 0x81]) + struct.pack('>QII', 0x1000, 7, 2) + \
        struct.pack('>QII', 0x2000, 9, 64)
    datagram4 = bytes([4, 8, 0x12, 0x34, 10, 0, 0, 1])
    datagram6 = bytes([6, 24, 0x12, 0x34]) + bytes(4) + socket.inet_pton(socket.AF_INET6, 'fe80::1')
    udp4 = b'\x55\x55\x55\x55\x04\x07\x10\0' + struct.pack('>I', 0x123) + bytes([10, 0, 0, 1])
    udp6 = b'\x55\x55\x55\x55\x06\0\x1c\0' + struct.pack('>I', 0x123) + bytes(16)
    steps = {
        'greeting': bytes([0, 40]) + greeting,
        'datagram': bytes([1, 8]) + datagram4 + bytes([1, 24]) + datagram6,
        'udp': bytes([2, 16, 0]) + udp4 + bytes([2, 28, 1]) + udp6,
        'stream': bytes([8, 30, 8, 34, 4, 50, 5, 8, 64, 4, 128, 5, 6, 20, 60, 7]) * 3,
    }
    for name, octets in steps.items():
        write('rs_wire', 'seed-' + name, b'\x40' + octets)


for seeds in (decode, neighbours, netlink, raw_frames, options, doctor, rsockets):
    seeds()
