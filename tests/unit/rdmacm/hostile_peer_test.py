#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""A hostile peer on the wire of a real engine. Runs in the network namespace of with_netdev.sh.
usage: hostile_peer_test.py SERVER UROCE [CASE...]"""

import pathlib
import struct
import subprocess
import sys
import time

try:
    import scapy  # noqa: F401
except ImportError:
    print("python3-scapy is not installed")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from hostile_rig import (BACKLOG, ENGINE, GUID, OWN, OWN_MAC, REPEATED, SERVICE_TCP, SERVICE_UDP,
                         SOON, TCP_PORT, Failure, Rig, Server, check)  # noqa: E402
import mad_peer  # noqa: E402
from mad_peer import (APR, DREP, DREQ, LAP, MAD, MRA, REJ, REP, REQ, RTU, SIDR_REP, SIDR_REQ, gid,
                      ip_header)  # noqa: E402


class Test(Rig):
    """The cases: H-65 and others."""

    def case_an_honest_peer(self):
        """First: the exchange from which the other cases deviate works."""
        self.close(*self.accepted())

    def case_numbers_that_cannot_be_guessed(self):
        """H-56: connection ids, queue pair numbers and first PSNs do not predict the next ones."""
        reps = []
        for _ in range(12):
            req, rep, number = self.accepted()
            reps.append((rep.local_id, rep.qpn, rep.psn))
            self.close(req, rep, number)
        for numbers, bits in zip(zip(*reps), (32, 24, 24)):
            steps = {(b - a) % (1 << bits) for a, b in zip(numbers, numbers[1:])}
            check(len(set(numbers)) == len(numbers), f"one comes again: {numbers}")
            check(len(steps) == len(numbers) - 1, f"steps are alike: {numbers}")
            check(max(numbers) - min(numbers) > 1 << (bits - 2), f"they lie near: {numbers}")

    def case_wrong_octets(self):
        """H-65: lengths, versions, classes, methods, states, attributes."""
        req = self.req()
        good = bytes(MAD(attribute=0x10, tid=5) / req)
        for octets in (b"", good[:4], good[:24], good[:255], good[:252], good + b"\0",
                       good + bytes(4), good * 3):
            self.peer.socket.send(self.peer.frame(octets))
        for name, value in (("base", 0), ("base", 2), ("mclass", 1), ("mclass", 8), ("method", 1),
                            ("method", 0x83), ("method", 0), ("attribute", 0), ("attribute", 0xf),
                            ("attribute", 0x1b), ("attribute", 0x1010), ("status", 1),
                            ("status", 0x0100)):
            self.peer.send(req, **{name: value})
        self.silence()
        # another version of the class is rejected (protocol-map 193), unless the message is an
        # answer
        for version in (0, 1, 3, 255):
            self.refused(31, self.req(), version=version)
        for body in (RTU(local_id=1, remote_id=2), DREQ(local_id=1, remote_id=2),
                     REJ(local_id=1, remote_id=2, reason=28)):
            self.peer.send(body, version=1)
        self.silence()

    def case_wrong_datagrams(self):
        """H-57, H-65: datagrams not for queue pair 1, or not from where they claim to come."""
        for bth, deth in (({"pkey": 0x1234}, {}), ({"pkey": 0x0000}, {}), ({}, {"qkey": 0x11111111}),
                          ({}, {"qkey": 0}), ({"dqpn": 0}, {}), ({"opcode": 0x65}, {}),
                          ({"opcode": 0x04}, {}), ({"opcode": 0x24}, {}), ({"icrc": 0x12345678}, {}),
                          ({"version": 1}, {}), ({"padcount": 3}, {})):
            self.peer.send(self.req(), bth=bth, deth=deth)
        for source in (ENGINE, "224.0.0.1", "255.255.255.255", "0.0.0.0", "0.1.2.3", "127.0.0.1",
                       "240.1.2.3"):
            self.peer.send(self.req(source=source), source=source)
        group = bytearray(self.peer.frame(MAD(attribute=0x10) / self.req()))
        group[6:12] = b"\xff" * 6
        self.peer.socket.send(group)
        self.silence()

    def case_requests_that_may_not_be(self):
        """H-66: requests with one error each, and the reason of the REJ (IBTA 12.6.7.2)."""
        for reason, fields in (
                (5, {"qpn": 0}), (5, {"qpn": 1}), (5, {"qpn": 0xffffff}),
                (26, {"mtu": 0}), (26, {"mtu": 6}), (26, {"mtu": 15}), (26, {"mtu": 5}),
                (9, {"transport": 2}), (9, {"transport": 3, "extended": 7}),
                (8, {"transport": 1}), (8, {"transport": 3, "extended": 1}),
                (12, {"p_dgid": gid("10.77.0.9")}), (12, {"p_sgid": gid("10.77.0.9")}),
                (12, {"p_sgid": bytes(16)}), (5, {"pkey": 0x1234}), (5, {"pkey": 0}),
                (8, {"service": SERVICE_TCP + 1}), (8, {"service": SERVICE_UDP}),
                (8, {"service": 0x013f0000 | TCP_PORT}), (8, {"service": 1 << 40 | SERVICE_TCP}),
                (8, {"service": 0xffffffffffffffff})):
            self.refused(reason, self.req(**fields))

    def case_all_that_may_be(self):
        """H-66, H-80: the limits of what is legal: retries of 7, depths of 0 and 255, every PSN."""
        for fields in ({"retry": 0, "rnr": 0, "retries": 0}, {"retry": 7, "rnr": 7},
                       {"resources": 0, "depth": 0}, {"resources": 255, "depth": 255},
                       {"psn": 0xffffff}, {"psn": 0}, {"mtu": 1}, {"p_hops": 0}, {"p_tclass": 255},
                       {"remote_timeout": 0}, {"pkey": 0x7fff}, {"flow_control": 1}, {"srq": 1},
                       {"p_rate": 63}, {"p_flow": 0xfffff}, {"a_dgid": gid("10.77.0.7")}):
            self.close(*self.accepted(**fields))

    def case_lies_in_private_data(self):
        """H-67: the RDMA CM's header."""
        for header in (bytes(36), ip_header(OWN, ENGINE, version=5), ip_header(OWN, ENGINE, version=0),
                       ip_header(OWN, ENGINE, version=15), ip_header("0.0.0.0", ENGINE),
                       ip_header(OWN, "0.0.0.0"), b"\1" + ip_header(OWN, ENGINE)[1:]):
            self.refused(28, self.req(private=header))
        # an address that is not the engine's, only in this header
        self.refused(8, self.req(private=ip_header(OWN, "10.77.0.9")))

    def case_lengths_in_messages(self):
        """H-67, H-84: additional information with a length beyond the field."""
        number = self.server.connect()
        req = self.expect(REQ)
        for length in (73, 127):
            self.peer.send(REJ(local_id=1, remote_id=req.local_id, reason=28, length=length))
        self.silence()
        self.peer.send(REJ(local_id=1, remote_id=req.local_id, reason=28, length=72))
        self.server.expect(f"REJECTED {number} 28")
        self.server.tell(f"destroy {number}")

    def case_everything_twice(self):
        """H-69: a repeated message takes effect once, and its answer is repeated."""
        req = self.req(words=b"a")
        for _ in range(3):
            self.peer.send(req, tid=77)
        number = self.server.request()
        reps = [self.expect(REP, tid=77, remote_id=req.local_id) for _ in range(3)]
        check(bytes(reps[0]) == bytes(reps[1]) == bytes(reps[2]), "another REP")
        rep = reps[0]
        for _ in range(3):
            self.peer.send(RTU(local_id=req.local_id, remote_id=rep.local_id), tid=77)
        self.server.expect(f"ESTABLISHED {number} 0")
        for _ in range(3):
            self.peer.send(DREQ(local_id=req.local_id, remote_id=rep.local_id, qpn=rep.qpn), tid=78)
        self.server.expect(f"DISCONNECTED {number} 0")
        # its answer shows that the engine has handled all three
        self.refused(6, REP(local_id=5, remote_id=0x77777777, qpn=9, guid=GUID), about=1)
        self.server.tell(f"disconnect {number}")
        self.expect(DREP, tid=78)
        self.peer.send(DREQ(local_id=req.local_id, remote_id=rep.local_id, qpn=rep.qpn), tid=78)
        self.expect(DREP, tid=78)
        self.server.expect(f"TIMEWAIT_EXIT {number} 0")
        self.server.tell(f"destroy {number}")
        # and when the connection is forgotten
        self.peer.send(DREQ(local_id=req.local_id, remote_id=rep.local_id, qpn=rep.qpn), tid=79)
        self.expect(DREP, tid=79)
        self.silence()

    def case_disconnects_that_cross(self):
        """H-69: crossing DREQs end both sides at once."""
        req, rep, number = self.accepted()
        self.server.tell(f"disconnect {number}")
        dreq = self.expect(DREQ, remote_id=req.local_id, qpn=req.qpn)
        self.peer.send(DREQ(local_id=req.local_id, remote_id=dreq.local_id, qpn=rep.qpn))
        self.expect(DREP)
        self.server.expect(f"DISCONNECTED {number} 0")
        self.server.expect(f"TIMEWAIT_EXIT {number} 0")
        self.server.tell(f"destroy {number}")

    def case_a_reply_to_nothing(self):
        """A REP to a REQ that was never sent, and other messages without a connection."""
        self.refused(6, REP(local_id=5, remote_id=0x77777777, qpn=9, guid=GUID), about=1)
        self.refused(6, REP(local_id=5, remote_id=0, qpn=9, guid=GUID), about=1)
        for body in (RTU(local_id=5, remote_id=6), MRA(local_id=5, remote_id=6, timeout=31),
                     REJ(local_id=5, remote_id=6, reason=28), DREP(local_id=5, remote_id=6),
                     REJ(local_id=5, reason=4, length=8, information=struct.pack("!Q", GUID)),
                     APR(local_id=5, remote_id=6), SIDR_REP(local_id=5, qpn=9)):
            self.peer.send(body)
        self.silence()
        tid = self.peer.send(DREQ(local_id=5, remote_id=6, qpn=9))
        self.expect(DREP, tid=tid, remote_id=5)
        tid = self.peer.send(LAP(local_id=5, remote_id=6, qpn=9))
        self.expect(APR, tid=tid, remote_id=5, status=1)
        self.silence()

    def case_replies_that_may_not_be(self):
        """Wrong REPs to a REQ: each ends it, and the program gets an event."""
        for qpn in (0, 1, 0xffffff):
            number = self.server.connect()
            req = self.expect(REQ, p_sgid=gid(ENGINE), p_dgid=gid(OWN))
            rep = REP(local_id=self.fresh(), remote_id=req.local_id, qpn=qpn, guid=GUID)
            self.refused_reply(rep, 5)
            self.server.expect(rf"(UNREACHABLE|CONNECT_ERROR) {number} -?\d+")
            self.server.tell(f"destroy {number}")
        number = self.server.connect()
        req = self.expect(REQ)
        # from another address, or for another id: no effect
        self.refused_reply(REP(local_id=5, remote_id=req.local_id ^ 1, qpn=9, guid=GUID), 6)
        self.peer.send(REP(local_id=5, remote_id=req.local_id, qpn=9, guid=GUID),
                       source="10.77.0.3")
        self.expect(REJ, reason=6)
        self.server.silent()
        self.peer.send(REJ(local_id=5, remote_id=req.local_id, reason=28))
        self.server.expect(f"REJECTED {number} 28")
        self.server.tell(f"destroy {number}")

    def refused_reply(self, rep, reason):
        tid = self.peer.send(rep)
        self.expect(REJ, reason=reason, about=1, remote_id=rep.local_id)
        return tid

    def case_a_reply_from_a_queue_pair_in_use(self):
        """H-71 from the passive side: the older connection is stale, and so is the answer."""
        old, old_rep, old_number = self.accepted()
        number = self.server.connect()
        req = self.expect(REQ)
        self.peer.send(REP(local_id=self.fresh(), remote_id=req.local_id, qpn=old.qpn, guid=GUID))
        kinds = {}
        while len(kinds) < 2:
            _, body, again = self.receive(SOON)
            if not (again and isinstance(body, REPEATED)):
                kinds[type(body)] = body
        check(kinds.keys() == {DREQ, REJ} and kinds[REJ].reason == 10, f"{kinds}")
        self.server.expect(f"REJECTED {number} 10")
        self.peer.send(DREP(local_id=old.local_id, remote_id=old_rep.local_id))
        self.server.expect(f"DISCONNECTED {old_number} 0")
        self.server.expect(f"TIMEWAIT_EXIT {old_number} 0")
        self.server.tell(f"destroy {number}")
        self.server.tell(f"destroy {old_number}")

    def case_a_queue_pair_in_use(self):
        """H-71: a REQ for it makes the older connection stale; the same number of another GUID does
        not."""
        old, rep, number = self.accepted()
        other = self.accepted(local_id=old.local_id, guid=GUID + 1)
        self.peer.send(self.req(qpn=old.qpn))
        self.expect(REJ, reason=10, about=0)
        self.expect(DREQ, remote_id=old.local_id, qpn=old.qpn)
        self.peer.send(DREP(local_id=old.local_id, remote_id=rep.local_id))
        self.server.expect(f"DISCONNECTED {number} 0")
        self.server.expect(f"TIMEWAIT_EXIT {number} 0")
        self.server.tell(f"destroy {number}")
        self.close(*other)

    def case_connections_of_others(self):
        """Right numbers from the wrong address do not affect the connection."""
        req, rep, number = self.accepted()
        elsewhere = "10.77.0.99"
        for body in (REJ(local_id=req.local_id, remote_id=rep.local_id, reason=4),
                     MRA(local_id=req.local_id, remote_id=rep.local_id, timeout=31),
                     RTU(local_id=req.local_id, remote_id=rep.local_id)):
            self.peer.send(body, source=elsewhere)
        self.silence()
        self.peer.send(DREQ(local_id=req.local_id, remote_id=rep.local_id, qpn=rep.qpn),
                       source=elsewhere)
        self.expect(DREP)  # as for any that it does not know
        # and from the right address with a wrong queue pair, or a wrong id of the sender
        self.peer.send(DREQ(local_id=req.local_id, remote_id=rep.local_id, qpn=rep.qpn ^ 1))
        self.peer.send(REJ(local_id=req.local_id ^ 1, remote_id=rep.local_id, reason=4))
        self.silence()
        self.close(req, rep, number)

    def case_a_peer_that_vanishes(self):
        """After the connection is established the peer is silent: a DREQ is repeated as often as
        the peer asked for, then the id is free. A peer that never sends an RTU: the same with the
        REP."""
        # long enough for our RTU: a REP repeated meanwhile would be mistaken for an answer
        req, rep, number = self.accepted(local_timeout=18, retries=3)
        self.server.tell(f"disconnect {number}")
        for _ in range(4):
            self.expect(DREQ, remote_id=req.local_id)
        self.server.expect(rf"DISCONNECTED {number} -110")
        self.server.expect(f"TIMEWAIT_EXIT {number} 0")
        self.server.tell(f"destroy {number}")
        req = self.req(words=b"a", local_timeout=12, retries=3)
        self.peer.send(req)
        number = self.server.request()
        for _ in range(4):
            self.expect(REP, remote_id=req.local_id)
        self.expect(REJ, reason=4)
        self.server.expect(rf"UNREACHABLE {number} -110")
        self.server.expect(f"TIMEWAIT_EXIT {number} 0")
        self.server.tell(f"destroy {number}")

    def case_promises_without_end(self):
        """H-81: MRAs with the longest time, one after the other, delay the end only so long."""
        req = self.req(words=b"a", local_timeout=12, retries=2)
        self.peer.send(req)
        number = self.server.request()
        rep = self.expect(REP)
        for _ in range(1000):
            self.peer.send(MRA(local_id=req.local_id, remote_id=rep.local_id, about=1, timeout=14))
        for _ in range(2):
            self.expect(REP)
        self.expect(REJ, reason=4)
        self.server.expect(rf"UNREACHABLE {number} -110")
        self.server.expect(f"TIMEWAIT_EXIT {number} 0")
        self.server.tell(f"destroy {number}")

    def case_a_rejection_while_it_is_asked(self):
        """H-70: the peer gives up before the program has answered."""
        req = self.req()
        self.peer.send(req)
        number = self.server.request()
        self.peer.send(REJ(local_id=req.local_id, reason=4, about=2, length=8,
                           information=struct.pack("!Q", GUID)))
        self.server.expect(f"REJECTED {number} 4")
        self.server.tell(f"accept {number}", "refused accept 22")
        self.server.tell(f"destroy {number}")
        self.silence()

    def case_reasons(self):
        """protocol-map 193: every defined reason, and some undefined ones."""
        for reason in (*range(0, 37), 255, 0xffff):
            number = self.server.connect()
            req = self.expect(REQ)
            self.peer.send(REJ(local_id=0, remote_id=req.local_id, reason=reason))
            self.server.expect(f"REJECTED {number} {reason}")
            self.server.tell(f"destroy {number}")

    def case_a_slow_program(self):
        """protocol-map 195: a peer that repeats its REQ meanwhile gets an MRA with the time."""
        req = self.req()
        tid = self.peer.send(req)
        number = self.server.request()
        for _ in range(2):
            self.peer.send(req, tid=tid)
            self.expect(MRA, tid=tid, remote_id=req.local_id, about=0, timeout=24)
        self.server.tell(f"accept {number}")
        rep = self.expect(REP, tid=tid)
        self.peer.send(RTU(local_id=req.local_id, remote_id=rep.local_id), tid=tid)
        self.server.expect(f"ESTABLISHED {number} 0")
        self.close(req, rep, number)

    def case_another_path(self):
        """protocol-map 195, 200: an alternate path is offered in the REQ, and later: never
        accepted."""
        req = self.req(words=b"a", a_sgid=gid(OWN), a_dgid=gid(ENGINE), a_ack_timeout=10)
        tid = self.peer.send(req)
        number = self.server.request()
        rep = self.expect(REP, failover=1)
        self.peer.send(RTU(local_id=req.local_id, remote_id=rep.local_id), tid=tid)
        self.server.expect(f"ESTABLISHED {number} 0")
        tid = self.peer.send(LAP(local_id=req.local_id, remote_id=rep.local_id, qpn=rep.qpn))
        self.expect(APR, tid=tid, remote_id=req.local_id, status=2)
        self.server.silent()
        self.close(req, rep, number)

    def case_data_before_it_is_established(self):
        """protocol-map 194: the RTU is lost, but not the first packet to the queue pair in RTR."""
        req = self.req(words=b"b")
        self.peer.send(req)
        number = self.server.request()
        rep = self.expect(REP, remote_id=req.local_id)
        # for another queue pair, or with a wrong PSN: no effect
        self.peer.write(rep.qpn, rep.psn + 5)
        self.peer.write(rep.qpn ^ 1, rep.psn)
        self.peer.write(rep.qpn, rep.psn, source="10.77.0.9")
        self.peer.write(rep.qpn, rep.psn)
        self.server.expect(f"ESTABLISHED {number} 0")
        self.peer.send(RTU(local_id=req.local_id, remote_id=rep.local_id))
        self.silence()
        self.close(req, rep, number)

    def case_neighbours_that_are_none(self):
        """H-74, H-75: ids whose next hop does not answer; half of them are destroyed meanwhile."""
        error, told, made, ended = r"ADDR_ERROR \d+ -\d+", [], [], []
        for n in range(20):
            self.server.tell(f"connect 10.77.0.{230 + n % 4} 9000", None)
            *early, begun = self.server.until(r"begun \d+", error)
            told += early
            made.append(int(begun.split()[1]))
        for number in made[::2]:
            self.server.tell(f"destroy {number}", None)
            *early, _ = self.server.until("done", error)
            told += early
            # if destroying is slow, some of them have had their event already
            ended += [number] if not any(line.split()[1] == str(number) for line in told) else []
        while len(told) < len(made) - len(ended):
            told.append(self.server.expect(error))
        told = sorted(int(line.split()[1]) for line in told)
        check(told == sorted(set(made) - set(ended)), f"told {told}, of {made} but {ended}")
        self.silence()
        for number in made[1::2]:
            self.server.tell(f"destroy {number}")

    def case_datagram_services(self):
        """SIDR: a repeated request is answered again; a wrong one is refused with its status."""
        req = SIDR_REQ(local_id=self.fresh(), service=SERVICE_UDP,
                       private=ip_header(OWN, ENGINE) + b"a")
        self.peer.send(req)
        number = self.server.request()
        rep = self.expect(SIDR_REP, local_id=req.local_id, status=0, qkey=0x01234567)
        self.peer.send(req)
        check(self.expect(SIDR_REP, local_id=req.local_id).qpn == rep.qpn, "another queue pair")
        self.server.tell(f"destroy {number}")
        for status, fields in ((1, {"service": SERVICE_UDP + 1}), (1, {"service": SERVICE_TCP}),
                               (2, {"pkey": 5}), (2, {"private": bytes(36)})):
            bad = SIDR_REQ(**{"local_id": self.fresh(), "service": SERVICE_UDP,
                              "private": ip_header(OWN, ENGINE), **fields})
            self.peer.send(bad)
            self.expect(SIDR_REP, local_id=bad.local_id, status=status, qpn=0)
        self.peer.send(SIDR_REQ(local_id=1, service=SERVICE_UDP), version=1)
        self.expect(SIDR_REP, status=5)
        self.silence()

    def flood(self, count, sources, words=b"h"):
        """REQs that differ in ids, queue pairs and addresses; computes the ICRC itself."""
        frames = []
        for source in sources:
            frame = bytearray(self.peer.frame(MAD(attribute=0x10) / self.req(source, words),
                                              source))
            check(bytes(frame[-4:]) == mad_peer.icrc(frame), "scapy and zlib do not agree")
            frames.append(frame)
        body = 14 + 20 + 8 + 12 + 8 + 24
        for i in range(count):
            number = self.fresh()
            frame = frames[i % len(frames)]
            struct.pack_into("!Q", frame, body - 16, number)
            struct.pack_into("!I", frame, body, number)
            struct.pack_into("!I", frame, body + 32, (number & 0xffffff) << 8 | 4)
            frame[-4:] = mad_peer.icrc(frame)
            self.peer.socket.send(frame)
        return frames

    def case_an_rsocket_that_gets_no_rtu(self):
        """The peer has taken the REP, and ends the connection. raccept() returns it all the same."""
        self.server.tell(f"rlisten {TCP_PORT + 9}")
        greeting = struct.pack("!BBHIQIIQII", 1, 0, 384, 0, 0x10000, 1, 2, 0x20000, 1, 0x10000)
        req = self.req(service=SERVICE_TCP + 9, words=greeting)
        self.peer.send(req)
        rep = self.expect(REP, remote_id=req.local_id)
        self.peer.send(DREQ(local_id=req.local_id, remote_id=rep.local_id, qpn=rep.qpn))
        self.expect(DREP, remote_id=req.local_id)
        self.server.tell("raccept", "received 0")

    # hostile H-57: floods.
    def case_requests_without_end(self):
        """H-68: a flood while the program does not take events: as many wait as its backlog allows,
        and an existing connection keeps working. Afterwards nothing is left."""
        before = self.statistics()
        caller = self.server.begin("self")
        self.server.expect(f"ADDR_RESOLVED {caller} 0")
        self.server.expect(f"ROUTE_RESOLVED {caller} 0")
        called = self.server.request()
        for _ in range(2):
            self.server.expect(r"ESTABLISHED \d+ 0")
        self.server.tell("exercise 100")
        self.server.tell("look-away", None)
        began = time.monotonic()
        self.flood(20000, [OWN] + [f"10.77.0.{n}" for n in range(10, 200)])
        self.server.tell("exercise 1000")
        took = time.monotonic() - began
        self.settle()
        self.server.tell("look", None)
        requests = [self.server.request() for _ in range(BACKLOG)]
        self.drain()
        self.server.silent()
        for number in requests:
            self.server.tell(f"destroy {number}")
        self.drain()
        self.server.tell("exercise 100")
        self.server.tell(f"disconnect {caller}")
        self.server.expect(rf"DISCONNECTED {called} 0")
        self.server.tell(f"disconnect {called}")
        # the side that answers may leave TIMEWAIT before the other one gets the answer
        rest = r"TIMEWAIT_EXIT \d+ 0"
        *early, _ = self.server.until(rf"DISCONNECTED {caller} 0", rest)
        for _ in range(2 - len(early)):
            self.server.expect(rest)
        self.server.tell(f"destroy {caller}")
        self.server.tell(f"destroy {called}")
        self.drain()
        self.close(*self.accepted())
        after = self.statistics()
        for what in ("clients", "qps", "cqs", "mrs"):
            check(after[what] == before[what], f"{before[what]} {what} before, {after[what]} after")
        return f"20000 requests, 1000 writes meanwhile, in {took:.1f} s"


def main():
    subprocess.run(["ip", "link", "set", "wire1", "address", OWN_MAC], check=True)
    # resolve all addresses to this peer
    for n in range(2, 200):
        subprocess.run(["ip", "neighbour", "replace", f"10.77.0.{n}", "lladdr", OWN_MAC, "dev",
                        "wire0", "nud", "permanent"], check=True)
    test = Test(*sys.argv[1:3])
    failed = 0
    cases = [name for name in dir(test) if name.startswith("case_")]
    for name in sys.argv[3:] or cases:
        name = name if name.startswith("case_") else "case_" + name
        try:
            said = getattr(test, name)() or ""
            print(f"ok {name[5:]} {said}")
        except (Failure, AssertionError) as problem:
            failed += 1
            print(f"FAILED {name[5:]}: {problem}")
            test.server.process.kill()
            test.server = Server(sys.argv[1])
            test.drain()
    test.end()
    print(f"{len(sys.argv[3:] or cases) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
