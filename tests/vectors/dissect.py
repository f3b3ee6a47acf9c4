#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Compare tshark's reading of the transport headers with our decoder's, field by field.

usage: dissect.py PRINT_PACKETS CAPTURE.pcap
exit status: 0 all fields agree, 1 a difference or nothing compared, 2 a tool that fails
"""

import os
import subprocess
import sys

OCTETS = ("infiniband.immdt", "infiniband.ieth")  # tshark prints them as hex without 0x
CNP = 0x81  # tshark does not know it


def rows(text):
    lines = text.splitlines()
    names = lines[0].split("\t")
    for line in lines[1:]:
        yield dict(zip(names, line.split("\t")))


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def number(name, text):
    if text == "":
        return None
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 16 if name in OCTETS else 0)


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    here = os.path.dirname(os.path.abspath(__file__))
    theirs = {int(r["frame.number"]): r
              for r in rows(run([os.path.join(here, "make_fields.sh"), arguments[1]]))}
    frames = fields = different = refused = 0
    for ours in rows(run(arguments)):
        n = int(ours["frame.number"])
        if ours["verdict"] != "ok":
            if n in theirs:
                refused += 1
                print(f"frame {n}: RoCE to tshark, but we say {ours['verdict']}")
            continue
        if int(ours["infiniband.bth.opcode"]) == CNP:
            continue
        frames += 1
        if n not in theirs:
            different += 1
            print(f"frame {n}: not RoCE to tshark")
            continue
        for name, text in ours.items():
            if name in ("frame.number", "verdict"):
                continue
            fields += 1
            mine, other = number(name, text), number(name, theirs[n][name])
            if mine != other:
                different += 1
                print(f"frame {n}: {name}: we read {mine}, tshark {other}")
    print(f"{arguments[1]}: {frames} frames, {fields} fields compared, {different} differ, "
          f"{refused} frames refused")
    return 0 if frames and not different and not refused else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
