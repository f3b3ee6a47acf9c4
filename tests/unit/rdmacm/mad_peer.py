# SPDX-License-Identifier: BSD-3-Clause
"""A peer of the connection manager that shares no code with it: messages as the InfiniBand
specification defines them (volume 1, 12.6), frames and ICRCs by scapy, an AF_PACKET socket."""

import socket
import struct
import time
import zlib

from scapy.contrib.roce import BTH
from scapy.fields import (BitField, ByteField, IntField, LongField, ShortField, StrFixedLenField,
                          XBitField)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

UD_SEND_ONLY = 0x64
RC_WRITE_ONLY = 0x0a
GSI_QKEY = 0x80010000
PORT = 4791


class DETH(Packet):
    name = "DETH"
    fields_desc = [IntField("qkey", GSI_QKEY), ByteField("reserved", 0), XBitField("sqpn", 1, 24)]


class MAD(Packet):
    name = "MAD"
    fields_desc = [ByteField("base", 1), ByteField("mclass", 7), ByteField("version", 2),
                   ByteField("method", 3), ShortField("status", 0), ShortField("specific", 0),
                   LongField("tid", 0), ShortField("attribute", 0), ShortField("reserved", 0),
                   IntField("modifier", 0)]


def ids():
    return [IntField("local_id", 0), IntField("remote_id", 0)]


def path(prefix):
    return [ShortField(f"{prefix}_slid", 0xffff), ShortField(f"{prefix}_dlid", 0xffff),
            StrFixedLenField(f"{prefix}_sgid", b"", 16), StrFixedLenField(f"{prefix}_dgid", b"", 16),
            BitField(f"{prefix}_flow", 0, 20), BitField(f"{prefix}_r0", 0, 6),
            BitField(f"{prefix}_rate", 3, 6), ByteField(f"{prefix}_tclass", 0),
            ByteField(f"{prefix}_hops", 64), BitField(f"{prefix}_sl", 0, 4),
            BitField(f"{prefix}_local", 0, 1), BitField(f"{prefix}_r1", 0, 3),
            BitField(f"{prefix}_ack_timeout", 10, 5), BitField(f"{prefix}_r2", 0, 3)]


def message(name, attribute, fields, private):
    made = type(name, (Packet,), {"name": name, "fields_desc":
                                  [*fields, StrFixedLenField("private", b"", private)]})
    made.attribute = attribute
    return made


REQ = message("REQ", 0x10, [
    IntField("local_id", 0), IntField("r0", 0), LongField("service", 0), LongField("guid", 0),
    IntField("r1", 0), IntField("qkey", 0), XBitField("qpn", 0, 24), ByteField("resources", 4),
    XBitField("eecn", 0, 24), ByteField("depth", 4), XBitField("remote_eecn", 0, 24),
    BitField("remote_timeout", 10, 5), BitField("transport", 0, 2), BitField("flow_control", 0, 1),
    XBitField("psn", 0, 24), BitField("local_timeout", 19, 5), BitField("retry", 7, 3),
    ShortField("pkey", 0xffff), BitField("mtu", 3, 4), BitField("rdc", 0, 1), BitField("rnr", 7, 3),
    BitField("retries", 3, 4), BitField("srq", 0, 1), BitField("extended", 0, 3),
    *path("p"), *path("a")], 92)
MRA = message("MRA", 0x11, [*ids(), BitField("about", 0, 2), BitField("r0", 0, 6),
                            BitField("timeout", 0, 5), BitField("r1", 0, 3)], 222)
REJ = message("REJ", 0x12, [*ids(), BitField("about", 0, 2), BitField("r0", 0, 6),
                            BitField("length", 0, 7), BitField("r1", 0, 1), ShortField("reason", 0),
                            StrFixedLenField("information", b"", 72)], 148)
REP = message("REP", 0x13, [
    *ids(), IntField("qkey", 0), XBitField("qpn", 0, 24), ByteField("r0", 0),
    XBitField("eecn", 0, 24), ByteField("r1", 0), XBitField("psn", 0, 24), ByteField("r2", 0),
    ByteField("resources", 4), ByteField("depth", 4), BitField("delay", 8, 5),
    BitField("failover", 0, 2), BitField("flow_control", 0, 1), BitField("rnr", 7, 3),
    BitField("srq", 0, 1), BitField("r3", 0, 4), LongField("guid", 0)], 196)
RTU = message("RTU", 0x14, ids(), 224)
DREQ = message("DREQ", 0x15, [*ids(), XBitField("qpn", 0, 24), ByteField("r0", 0)], 220)
DREP = message("DREP", 0x16, ids(), 224)
SIDR_REQ = message("SIDR_REQ", 0x17, [IntField("local_id", 0), ShortField("pkey", 0xffff),
                                      ShortField("r0", 0), LongField("service", 0)], 216)
SIDR_REP = message("SIDR_REP", 0x18, [
    IntField("local_id", 0), ByteField("status", 0), ByteField("length", 0), ShortField("r0", 0),
    XBitField("qpn", 0, 24), ByteField("r1", 0), LongField("service", 0), IntField("qkey", 0),
    StrFixedLenField("information", b"", 72)], 136)
LAP = message("LAP", 0x19, [*ids(), IntField("r0", 0), XBitField("qpn", 0, 24),
                            BitField("timeout", 0, 5), BitField("r1", 0, 3), IntField("r2", 0),
                            StrFixedLenField("path", b"", 44)], 168)
APR = message("APR", 0x1a, [*ids(), ByteField("length", 0), ByteField("status", 0),
                            ShortField("r0", 0), StrFixedLenField("information", b"", 72)], 148)
KINDS = {kind.attribute: kind for kind in (REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP,
                                           LAP, APR)}
for _kind in KINDS.values():
    assert len(bytes(MAD() / _kind())) == 256, _kind.name


def gid(address):
    return bytes(10) + b"\xff\xff" + socket.inet_aton(address)


def ip_header(source, destination, port=1000, version=4):
    """The header that the RDMA CM puts before a program's private data (annex A11)."""
    return (struct.pack("!BBH", 0, version << 4, port) + bytes(12) + socket.inet_aton(source) +
            bytes(12) + socket.inet_aton(destination))


def icrc(frame):
    """The ICRC of a whole IPv4 frame, computed without scapy."""
    ip = bytearray(frame[14:-4])
    ip[1] = ip[8] = 0xff
    ip[10] = ip[11] = 0xff
    ip[26] = ip[27] = 0xff
    ip[28 + 4] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip))


class Peer:
    """A host on the wire with any number of addresses."""

    def __init__(self, interface, mac, own, theirs, their_mac):
        self.mac, self.address, self.theirs, self.their_mac = mac, own, theirs, their_mac
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        self.socket.bind((interface, 0))
        self.psn = 0
        self.tid = 0x1000

    def frame(self, mad, source=None, bth=None, deth=None):
        """The octets of a frame that carries `mad` (a MAD / message, or octets) to queue pair 1."""
        self.psn = (self.psn + 1) & 0xffffff
        payload = bytes(mad)
        pad = -len(payload) % 4
        header = {"opcode": UD_SEND_ONLY, "migreq": 1, "padcount": pad, "dqpn": 1, "psn": self.psn,
                  **(bth or {})}
        return bytes(Ether(dst=self.their_mac, src=self.mac) /
                     IP(src=source or self.address, dst=self.theirs, ttl=64, flags="DF") /
                     UDP(sport=49152, dport=PORT, chksum=0) / BTH(**header) /
                     DETH(**(deth or {})) / Raw(payload + bytes(pad)))

    def send(self, body, source=None, bth=None, deth=None, **mad):
        """Sends a message; `mad` overrides fields of the MAD's header."""
        self.tid += 1
        header = {"tid": self.tid, "attribute": body.attribute, **mad}
        self.socket.send(self.frame(MAD(**header) / body, source, bth, deth))
        return header["tid"]

    def write(self, qpn, psn, source=None):
        """Sends an empty RDMA WRITE to a queue pair."""
        self.socket.send(bytes(Ether(dst=self.their_mac, src=self.mac) /
                               IP(src=source or self.address, dst=self.theirs, ttl=64, flags="DF") /
                               UDP(sport=49152, dport=PORT, chksum=0) /
                               BTH(opcode=RC_WRITE_ONLY, migreq=1, dqpn=qpn, psn=psn) /
                               Raw(bytes(16))))

    def receive(self, limit):
        """The engine's next message: (MAD, body, destination address), or None if none comes in
        time."""
        end = time.monotonic() + limit
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.socket.settimeout(left)
            try:
                frame = self.socket.recv(9000)
            except TimeoutError:
                return None
            parsed = self.parse(frame)
            if parsed is not None:
                return parsed

    def parse(self, frame):
        packet = Ether(frame)
        if packet.src != self.their_mac or UDP not in packet or packet[UDP].dport != PORT:
            return None
        total = 14 + packet[IP].len
        frame = frame[:total]
        bth = frame[42:54]
        if struct.unpack("!I", bth[4:8])[0] & 0xffffff != 1:
            return None
        assert frame[-4:] == icrc(frame), "the engine's ICRC is wrong"
        assert bth[0] == UD_SEND_ONLY and total == 42 + 12 + 8 + 256 + 4, "not a datagram of a MAD"
        qkey, source = struct.unpack("!II", frame[54:62])
        assert qkey == GSI_QKEY and source == 1, "not from queue pair 1"
        mad = MAD(frame[62:-4])
        assert (mad.base, mad.mclass, mad.version, mad.method) == (1, 7, 2, 3)
        return mad, KINDS[mad.attribute](bytes(mad.payload)), packet[IP].dst
