#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Which files one RDMA WRITE walks through in the engine, from its rx burst to its acknowledgement.

    walk.py BUILD [-v]    a build with -finstrument-functions (see walk.c); -v: the calls, indented, and the climbs

A file counts if one of its functions is called, an inline function of a header, too. The steps lead from one
call to the next, as somebody reads who follows the calls. Three kinds of them are counted:

    climb      it leads to a higher room (ROOMS): the reader is done with a detail below, and goes back up
    return     it leads to a file in which the walk was before, but not just then
    re-entry   it calls into a file of which another function waits further up, behind a function of another file

Needs gdb.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# From the lowest to the highest, as meson.build lists them. lib/engine had the data path until it was split.
ROOMS = ("lib/base", "lib/wire", "lib/memory", "lib/transport", "lib/queue", "lib/protocol", "drivers", "lib/lcore",
         "lib/engine")


def entries(program):
    """(depth, address) of each call. The program is not placed at random, so its addresses have names."""
    out = subprocess.run(["setarch", "-R", program], capture_output=True, text=True, check=True).stdout
    return [(int(depth), int(address, 16)) for depth, address in
            re.findall(r"^(\d+) 0x([0-9a-f]+)$", out, re.MULTILINE)]


def names(program, addresses):
    """address -> (function, file below the root). Asks gdb: addr2line names the wrong file for inline functions."""
    base = 0 if "EXEC" in subprocess.run(["readelf", "-h", program], capture_output=True, text=True,
                                         check=True).stdout else 0x555555554000
    wanted = sorted(set(addresses))
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.write("".join(f"info line *{a - base:#x}\n" for a in wanted))
        script.flush()
        out = subprocess.run(["gdb", "-batch", "-nx", "-x", script.name, program], capture_output=True, text=True,
                             check=True).stdout
    said = re.findall(r'^Line \d+ of "([^"]+)".* address 0x([0-9a-f]+) <(\w+)', out, re.MULTILINE)
    return {int(a, 16) + base: (function, place.removeprefix("../")) for place, a, function in said}


def room(file):
    """The place of a file's room in ROOMS; None: not a file of the project."""
    return next((i for i, name in enumerate(ROOMS) if file.startswith(name + "/")), None)


def climbs(calls):
    """(function, file, function that the walk was in, its file) of each step to a higher room."""
    return [(function, file, before, left) for (_, before, left), (_, function, file) in zip(calls, calls[1:])
            if room(file) > room(left)]


def returns(calls):
    """How many steps lead to a file that was left before."""
    seen, last, count = set(), None, 0
    for _, _, file in calls:
        count += file != last and file in seen
        last = file
        seen.add(file)
    return count


def reentries(calls):
    """How many calls lead into a file of which a function waits, from a function of another file."""
    stack, count = [], 0
    for depth, _, file in calls:
        while stack and stack[-1][0] >= depth:
            stack.pop()
        count += bool(stack) and stack[-1][1] != file and file in [f for _, f in stack]
        stack.append((depth, file))
    return count


def report(what, calls):
    """One line of counts."""
    print(f"{what}: {len({file for _, _, file in calls})} files, {len(calls)} calls, {len(climbs(calls))} climbs, "
          f"{returns(calls)} returns, {reentries(calls)} re-entries")


def main():
    program = pathlib.Path(sys.argv[1]) / "tests/perf/walk"
    trace = entries(program)
    name = names(program, [a for _, a in trace])
    calls = [(depth, *name[a]) for depth, a in trace if room(name[a][1]) is not None]
    if "-v" in sys.argv:
        for depth, function, file in calls:
            print("  " * depth + f"{function}  {file}")
        for function, file, before, left in climbs(calls):
            print(f"climb: from {before} of {left} to {function} of {file}")
    for file in dict.fromkeys(file for _, _, file in calls):
        print(f"{sum(file == f for _, _, f in calls):4} {file}")
    report("all", calls)
    report("without headers", [c for c in calls if c[2].endswith(".c")])


if __name__ == "__main__":
    main()
