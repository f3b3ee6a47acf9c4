# SPDX-License-Identifier: BSD-3-Clause
"""Common to the cases of hostile_peer_test.py: a peer whose frames uroce's encoder does not make (mad_peer.py), an
ordinary server (cm_server.c), and what each must send and receive."""

import json
import os
import queue
import re
import subprocess
import threading
import time

import mad_peer
from mad_peer import DREP, DREQ, MRA, REJ, REP, REQ, RTU, gid, ip_header

OWN, OWN_MAC = "10.77.0.2", "02:00:00:00:00:02"
ENGINE = "10.77.0.1"
TCP_PORT = 7471
SERVICE_TCP, SERVICE_UDP = 0x01060000 | TCP_PORT, 0x01110000 | TCP_PORT
GUID = 0x1122334455667788
SOON, NEVER = 20, 0.3  # seconds: for frames that must come; for frames that must not come afterwards
BACKLOG = 8
REPEATED = (REQ, REP, DREQ)  # the engine repeats these if no answer comes in time


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


class Server:
    """cm_server.c: lines in and out, events by id."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, ENGINE, str(TCP_PORT), str(BACKLOG)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.expect("ready")

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put("(the end)")

    def tell(self, line, answer="done"):
        self.process.stdin.write(line + "\n")
        if answer is not None:
            self.expect(answer)

    def expect(self, pattern, limit=SOON):
        """The next line, which must match."""
        try:
            line = self.lines.get(timeout=limit)
        except queue.Empty:
            raise Failure(f"the server did not say '{pattern}'") from None
        check(re.fullmatch(pattern, line), f"the server said '{line}', not '{pattern}'")
        return line

    def until(self, answer, meanwhile):
        """The lines up to the one that matches `answer`; the others must match `meanwhile`."""
        lines = [self.expect(f"{answer}|{meanwhile}")]
        while not re.fullmatch(answer, lines[-1]):
            lines.append(self.expect(f"{answer}|{meanwhile}"))
        return lines

    def request(self):
        """The id of a connection request that must have come."""
        return int(self.expect(r"CONNECT_REQUEST \d+ 0").split()[1])

    def connect(self):
        """Begins a connection to the peer; returns the id."""
        number = self.begin(f"connect {OWN} 9000")
        self.expect(f"ADDR_RESOLVED {number} 0")
        self.expect(f"ROUTE_RESOLVED {number} 0")
        return number

    def begin(self, line):
        """Creates an id of the server's that connects; returns its number."""
        self.tell(line, None)
        return int(self.expect(r"begun \d+").split()[1])

    def silent(self):
        check(self.lines.empty(), "the server was told something: " + str(list(self.lines.queue)))


class Rig:
    """A peer on wire1 and an ordinary server on the engine at wire0."""

    def __init__(self, program, uroce):
        self.uroce = uroce
        mac = json.loads(subprocess.run(["ip", "-j", "link", "show", "wire0"], check=True,
                                        capture_output=True).stdout)[0]["address"]
        self.peer = mad_peer.Peer("wire1", OWN_MAC, OWN, ENGINE, mac)
        self.server = Server(program)
        self.next = 0x1000
        self.received = set()

    # -- what both ends exchange ----------------------------------------------------------------

    def fresh(self):
        self.next += 1
        return self.next

    def req(self, source=OWN, words=b"h", **fields):
        number = self.fresh()
        return REQ(**{"local_id": number, "qpn": number, "guid": GUID, "service": SERVICE_TCP,
                      "p_sgid": gid(source), "p_dgid": gid(ENGINE),
                      "private": ip_header(source, ENGINE) + words, **fields})

    def receive(self, limit):
        """The engine's next message: (MAD, body, whether it is a repetition), or None."""
        got = self.peer.receive(limit)
        if got is None:
            return None
        mad, body, _ = got
        again = bytes(mad) in self.received
        self.received.add(bytes(mad))
        return mad, body, again

    def expect(self, kind, limit=SOON, **fields):
        """The engine's next message. Skips MRAs, and repetitions that are due to our slowness."""
        while True:
            got = self.receive(limit)
            check(got is not None, f"no {kind.__name__} came")
            mad, body, again = got
            if kind is not MRA and isinstance(body, MRA):
                continue
            wrong = "" if isinstance(body, kind) else f"{body.name} instead of {kind.__name__}: {body!r}"
            for name, value in fields.items() if not wrong else ():
                have = getattr(mad if name == "tid" else body, name)
                if have != value:
                    wrong = f"{body.name}: {name} is {have}, not {value}"
            if not wrong:
                return body
            check(again and isinstance(body, REPEATED), wrong)

    def silence(self):
        """The engine answers the last question and nothing before it; the server hears nothing."""
        tid = self.peer.send(DREQ(local_id=7, remote_id=8, qpn=9))
        while True:
            got = self.receive(SOON)
            check(got is not None, "no answer to the last question")
            mad, body, again = got
            if isinstance(body, DREP) and mad.tid == tid:
                break
            check(again and isinstance(body, REPEATED), f"an answer: {body!r}")
        self.server.tell("hear")

    def refused(self, reason, body, about=0, **mad):
        """The engine rejects the message for this reason, and the server gets no event."""
        tid = self.peer.send(body, **mad)
        rej = self.expect(REJ, reason=reason, about=about, remote_id=body.local_id, tid=tid)
        self.server.silent()
        return rej

    def accepted(self, **fields):
        """A connection that the peer establishes correctly: (our REQ, its REP, the id)."""
        req = self.req(words=b"a", **fields)
        tid = self.peer.send(req)
        number = self.server.request()
        rep = self.expect(REP, remote_id=req.local_id, tid=tid)
        self.peer.send(RTU(local_id=req.local_id, remote_id=rep.local_id), tid=tid)
        self.server.expect(f"ESTABLISHED {number} 0")
        return req, rep, number

    def close(self, req, rep, number):
        self.peer.send(DREQ(local_id=req.local_id, remote_id=rep.local_id, qpn=rep.qpn))
        self.server.expect(f"DISCONNECTED {number} 0")
        self.server.tell(f"disconnect {number}")
        self.expect(DREP, remote_id=req.local_id)
        self.server.expect(f"TIMEWAIT_EXIT {number} 0")
        self.server.tell(f"destroy {number}")

    def statistics(self):
        out = subprocess.run([self.uroce, "stat", "--json", "--socket",
                              os.environ["UROCE_SOCKET"]], capture_output=True, text=True,
                             timeout=20, check=True).stdout
        return json.loads(out)

    def settle(self):
        """Waits until the engine has handled everything sent so far."""
        seen, end = None, time.monotonic() + 30
        while True:
            now = self.statistics()
            now = (now["rx_packets"], now["tx_packets"], now["by_reason"])
            if now == seen:
                return
            check(time.monotonic() < end, "the engine does not come to an end with it")
            seen = now
            self.drain()

    def drain(self):
        while self.peer.receive(NEVER) is not None:
            pass

    def end(self):
        self.server.process.stdin.write("end\n")
        check(self.server.process.wait(SOON) == 0, "the server did not end as it should")
