#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Which files one RDMA WRITE walks through in the engine, from its rx burst to its acknowledgement.

    walk.py BUILD [-v]    a build with -finstrument-functions (see walk.c); -v: the calls, indented

A file counts if one of its functions is called, an inline function of a header, too. A climb is a call into a
file of which another function waits further up, behind a function of another file: a reader who follows the
calls down must go back up. Returns are the steps from one call to the next that lead to a file in which the
walk was before, but not just then. Needs gdb.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

OURS = ("lib/", "drivers/")


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


def walk(calls):
    """The files in the order in which they are first called, the climbs, and how often a file is come back to."""
    files, climbs, stack, last, returns = {}, [], [], None, 0
    for depth, function, file in calls:
        while stack and stack[-1][0] >= depth:
            stack.pop()
        above = [f for _, f in stack]
        if above and above[-1] != file and file in above:
            climbs.append((function, file, above[-1]))
        stack.append((depth, file))
        returns += file != last and file in files
        last = file
        files.setdefault(file, []).append(function)
    return files, climbs, returns


def main():
    build = pathlib.Path(sys.argv[1])
    program = build / "tests/perf/walk"
    trace = entries(program)
    name = names(program, [a for _, a in trace])
    calls = [(depth, *name[a]) for depth, a in trace if name[a][1].startswith(OURS)]
    files, climbs, returns = walk(calls)
    if "-v" in sys.argv:
        for depth, function, file in calls:
            print("  " * depth + f"{function}  {file}")
    for file, functions in files.items():
        print(f"{len(functions):4} {file}")
    for function, file, caller in climbs:
        print(f"climb: {caller} calls {function} of {file}")
    sources = sum(f.endswith(".c") for f in files)
    print(f"{len(files)} files ({sources} of functions, {len(files) - sources} headers), "
          f"{len(calls)} calls, {len(climbs)} climbs, {returns} returns to a file that was left")


if __name__ == "__main__":
    main()
