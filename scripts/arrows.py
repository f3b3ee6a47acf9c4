#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Which folder may include from which: the table of docs/architecture.md, held over #include lines.

    arrows.py [ROOT]    prints 'FILE includes FILE' for each arrow that points backwards; then it fails
"""

import pathlib
import re
import sys

CORE = ["base", "wire", "memory", "transport", "cm"]
# A folder, and those of lib/ that it and its subfolders may include from, beside their own.
MAY = {
    "lib/base": [],
    "lib/wire": ["base"],
    "lib/memory": ["base"],
    "lib/transport": ["base", "wire", "memory"],
    "lib/cm": ["base", "wire"],
    "lib/queue": ["base"],
    "lib/protocol": ["base", "wire", "memory", "transport", "queue"],
    "drivers": ["base", "wire", "memory", "queue"],
    "lib/lcore": [*CORE, "queue", "protocol", "drivers"],
    "lib/control": [*CORE, "queue", "protocol", "drivers", "lcore", "engine/uroce.h"],
    "lib/engine": [*CORE, "queue", "protocol", "drivers", "lcore", "control"],
    "lib/client": ["base", "queue", "protocol", "drivers/client_memory"],
    "lib/verbs": ["base", "transport", "queue", "protocol", "drivers/client_memory", "client"],
    "lib/rdmacm": ["base", "queue", "protocol", "client", "verbs"],
    "lib/preload": [],
}
# What the control path may know of lcores; lcore/inside.h is for lcores alone.
HIDDEN = {"lcore/inside.h": "lib/lcore"}
# A folder that the rest of its room knows by one header only.
DOORS = {"lib/control/cm": "lib/control/cm/cm_control.h"}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def target(root, file, name):
    """The file that an include line means, relative to the root; None: outside of lib/ and drivers/."""
    for path in (root / "lib" / name, root / name, file.parent / name):
        if path.is_file():
            return path.resolve().relative_to(root)
    return None


def behind_a_door(file, to):
    """Whether a file includes from such a folder, which it is not in, another header than the folder's door."""
    return any(str(to).startswith(folder + "/") and str(to) != door and not str(file).startswith(folder + "/")
               for folder, door in DOORS.items())


def may_include(room, file, to):
    """Whether this file of a folder of MAY may include that path."""
    name = str(to).removeprefix("lib/")
    if behind_a_door(file, to):
        return False
    if str(to).startswith((room + "/", "config/")):
        return HIDDEN.get(name, room) == room
    if HIDDEN.get(name, room) != room:
        return False
    return any(name == allowed or name.startswith(allowed + "/") for allowed in MAY[room])


def backward(root):
    """(file, included file) of each arrow that points backwards."""
    for room in MAY:
        for file in sorted((root / room).rglob("*.[ch]")):
            for name in INCLUDE.findall(file.read_text()):
                to = target(root, file, name)
                if to is not None and not may_include(room, file.relative_to(root), to):
                    yield file.relative_to(root), to


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    arrows = list(backward(root))
    for file, to in arrows:
        print(f"{file} includes {to}")
    return 1 if arrows else 0


if __name__ == "__main__":
    sys.exit(main())
