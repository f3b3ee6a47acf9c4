#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""
Which lines of the code the tests run: scripts/coverage.py [--build DIR] [PART...]

Makes a build that counts (gcc, -Db_coverage=true; DIR is build-coverage), runs the parts one after the
other (tests: units, stories and what is kept of fuzzing; sim; end_to_end; all of them by default), and
prints a table by folder. What ran before is counted, too, unless --fresh is given.

    --suite S...    only these suites of meson's: unit, story, fuzz
    --report        runs nothing
    --write         puts the table into docs/testing.md
    --missing N     says the N files with the most lines that never ran, and the functions in them

A program writes its counts when it ends, so what dies by a signal counts for nothing. A test that looks at
the build itself may fail in such a build: it says so, and the table is made all the same.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/testing.md"
BEGIN, END = "<!-- scripts/coverage.py --write -->\n", "<!-- end -->\n"
OURS = ("lib", "drivers", "apps")
OPTIONS = ["-Db_coverage=true", "-Dbuildtype=debugoptimized", "-Doptimization=1", "-Ddocs=false"]
AT_ONCE = 64  # objects of one call of gcov


def make(build):
    """Linked by mold where it is installed: there are hundreds of programs."""
    env = {**os.environ, "CC": os.environ.get("CC", "gcc")}
    if shutil.which("mold"):
        env.setdefault("CC_LD", "mold")
    if not (build / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(build), str(ROOT), *OPTIONS], check=True, env=env,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(build)], check=True, env=env, stdout=subprocess.DEVNULL)


def open_counts(build):
    """Everybody may write them: programs of other users count, too, and say nothing on stderr."""
    for notes in build.rglob("*.gcno"):
        counts = notes.with_suffix(".gcda")
        counts.touch()
        counts.chmod(0o666)


def parts(build, suites):
    suite = [word for s in suites for word in ("--suite", s)]
    return {
        "tests": ["meson", "test", "-C", str(build), "--no-rebuild", "-t", "6", *suite],
        "sim": [str(build / "apps/uroce"), "sim", "--seeds", "300", "--messages", "200"],
        "end_to_end": [sys.executable, "-B", str(ROOT / "tests/end_to_end/run.py"), "--quick",
                       "--side-by-side", "2", "--build", str(build)],
    }


class File:
    def __init__(self):
        self.lines = collections.Counter()  # number: how often it ran
        self.functions = collections.Counter()  # (first line, name): how often it was called


def gcov(build, objects):
    """What gcov says of some objects: one line of JSON for each."""
    out = subprocess.run(["gcov", "--json-format", "--stdout", *map(str, objects)], cwd=build,
                         check=True, capture_output=True, text=True, errors="replace").stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def ours(build, name):
    """The path in the checkout of a file of ours; else None."""
    path = pathlib.Path(os.path.normpath(build / name))
    if not path.is_relative_to(ROOT) or path.is_relative_to(build):
        return None
    path = path.relative_to(ROOT)
    return path if path.parts[0] in OURS else None


def add(files, build, said):
    for entry in said["files"]:
        path = ours(build, entry["file"])
        if path is None:
            continue
        f = files[path]
        for line in entry["lines"]:
            f.lines[line["line_number"]] += line["count"]
        for function in entry["functions"]:
            f.functions[function["start_line"], function["name"]] += function["execution_count"]


def collect(build):
    for counts in build.rglob("*.gcda"):
        if counts.stat().st_size == 0:  # of open_counts(): gcov would fail
            counts.unlink()
    # tests count only by what they call; targets of tests/fuzz compile some of ours once more
    objects = sorted(p for p in build.rglob("*.gcno")
                     if "tests" not in p.relative_to(build).parts or "fuzz" in p.parts)
    pieces = [objects[i:i + AT_ONCE] for i in range(0, len(objects), AT_ONCE)]
    files = collections.defaultdict(File)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for piece in pool.map(lambda p: gcov(build, p), pieces):
            for said in piece:
                add(files, build, said)
    return files


def folder_of(path):
    """lib and drivers by their folders, a level deeper where there are many files."""
    return str(pathlib.PurePath(*path.parts[:min(2, len(path.parts) - 1)]))


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else ""


def table(files):
    rows = collections.defaultdict(lambda: [0, 0, 0, 0, 0])
    for path, f in files.items():
        for name in (folder_of(path), "all"):
            row = rows[name]
            row[0] += 1
            row[1] += len(f.lines)
            row[2] += sum(n > 0 for n in f.lines.values())
            row[3] += len(f.functions)
            row[4] += sum(n > 0 for n in f.functions.values())
    yield "| folder | files | lines | ran | functions | called |"
    yield "|---|---|---|---|---|---|"
    for name in sorted(rows, key=lambda n: (n == "all", n)):
        n, lines, ran, functions, called = rows[name]
        name = name if name == "all" else f"`{name}`"
        yield (f"| {name} | {n} | {lines:,} | {share(ran, lines)} | {functions:,} | "
               f"{share(called, functions)} |")


def missing(files, most):
    """The files that have most lines which never ran."""
    def never(f):
        return sum(n == 0 for n in f.lines.values())

    for path, f in sorted(files.items(), key=lambda e: -never(e[1]))[:most]:
        names = [name for (_, name), n in sorted(f.functions.items()) if n == 0]
        yield f"{never(f):5} of {len(f.lines):5}  {path}: {' '.join(names) or 'parts of functions'}"


def write(lines):
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    PAGE.write_text(head + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END, 1)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-coverage")
    parser.add_argument("--suite", nargs="+", default=[])
    parser.add_argument("--fresh", action="store_true", help="what ran before does not count")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--missing", type=int, default=0, metavar="N")
    args = parser.parse_args()
    build = args.build.resolve()
    known = parts(build, args.suite)
    unknown = [name for name in args.parts if name not in known]
    if unknown:
        parser.error(f"there is no part '{unknown[0]}': {' '.join(known)}")
    if args.fresh:
        for path in build.rglob("*.gcda"):
            path.unlink()
    if not args.report:
        make(build)
        open_counts(build)
        for name in args.parts or known:
            print(f"== {name}", flush=True)
            status = subprocess.run(known[name], cwd=ROOT, check=False).returncode
            print(f"{name}: {'ok' if status == 0 else f'status {status}'}", flush=True)
    files = collect(build)
    lines = list(table(files))
    print("\n".join(lines))
    for line in missing(files, args.missing):
        print(line)
    if args.write:
        write(lines)


if __name__ == "__main__":
    main()
