#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plants mistakes in the code, one at a time, and sees which test notices.

run.py                      every entry of tests/mutate/table/*.toml
run.py --only cq_ring       those whose name contains this
run.py --random 50 --seed 1 generated ones: comparisons, constants, statements left out or swapped
run.py --again              those once more that survived
run.py --check              only names the entries whose text is not once in its file (house/mutants)
run.py --report             the table of what was run so far, by folder
run.py --map ['lcore/*'...] only measures which lines each test runs (again those that are named)

The checkout is not touched: its files are copied to a folder of its own (--work) and built there, so that
the code counts which lines run (cc.sh). Each test runs there once: WORK/map has its lines and its time.
A mutant is tried by the tests that run its lines: those that its entry names and the file's own first,
the others the quickest first, until one fails or those that took --most seconds together have passed.
It is caught when a test fails twice, or twice takes much longer than it did; or when an assertion of the
compiler fails. It survives at once if no test runs its lines. A mutant that does not compile, or to the
same code as before, does not count. What was run is kept in WORK/results.json by its content: begun again,
run.py goes on where it stopped.

An entry of the table has `file`, `find` (once in the file), `replace`, `why` (what goes wrong), and may
have `tests` (to be tried first) and `unseen`: why no test can notice it."""
import argparse
import fcntl
import fnmatch
import hashlib
import json
import pathlib
import sys
import tomllib

import generate
from reach import ELSEWHERE, Reach
from tree import HERE, ROOT, Tree


class Stale(Exception):
    """The text of an entry is not in its file any more, or more than once."""


class Mutant:
    def __init__(self, entry, name):
        self.name = name
        self.file = entry['file']
        self.find = entry['find']
        self.replace = entry['replace']
        self.why = entry.get('why', '')
        self.tests = entry.get('tests', [])
        self.unseen = entry.get('unseen', '')
        self.at = entry.get('at')  # generated: offset in the file

    def text(self, root):
        if not (root / self.file).exists():
            raise Stale(f'{self.name} is stale: there is no {self.file}')
        text = (root / self.file).read_text()
        if self.at is not None:
            return text[:self.at] + self.replace + text[self.at + len(self.find):]
        if text.count(self.find) != 1:
            raise Stale(f'{self.name} is stale: its text is {text.count(self.find)} times in {self.file}')
        return text.replace(self.find, self.replace)

    def lines(self, root):
        """The first and the last one that it changes."""
        at = (root / self.file).read_text().index(self.find) if self.at is None else self.at
        before = (root / self.file).read_text().count('\n', 0, at)
        return before + 1, before + 1 + self.find.count('\n')

    def key(self, root):
        return hashlib.sha256(f'{self.file}\0{self.text(root)}'.encode()).hexdigest()[:20]


def from_table():
    for path in sorted((HERE / 'table').glob('*.toml')):
        for n, entry in enumerate(tomllib.loads(path.read_text())['mutant'], 1):
            yield Mutant(entry, f'{path.stem}-{n}')


def limit(seconds):
    """Of a test that took so long when it was measured: ten times that, but never half a minute more."""
    return 5 + min(10 * seconds, seconds + 30)


def tests_for(mutant, tree, reach):
    """Of the tests that run its lines: those that the entry names, the file's own, then the quickest first."""
    text = (tree.root / mutant.file).read_text()
    names = [n for n in reach.reaching(mutant.file, text, *mutant.lines(tree.root)) if n in tree.tests]
    near = [*mutant.tests, f'*/{pathlib.PurePath(mutant.file).stem}']

    def turn(name):
        return (next((i for i, p in enumerate(near) if fnmatch.fnmatch(name, p)), len(near)),
                reach.tests[name]['seconds'])

    return sorted(names, key=turn)


def affordable(names, reach, most):
    """The first, and as many more as took so many seconds together."""
    chosen = []
    for name in names:
        most -= reach.tests[name]['seconds']
        if most < 0 and chosen:
            break
        chosen.append(name)
    return chosen


def unbuilt(log):
    """What is to be said of a mutant that stops the compiler."""
    if 'static assertion failed' in log:
        return 'caught', 'the compiler'
    return 'invalid', 'it does not compile'


def fails(tree, name, most):
    """How it fails, twice: a test that fails only once has another reason, as other work of this machine."""
    how, _ = tree.try_test(name, most)
    if how:
        how, _ = tree.try_test(name, 2 * most)
    return how


def tried(tree, names, reach):
    """What the tests say of a mutant that is planted; None: nothing."""
    n = 1  # are built together: ever more, as the first ones are the likeliest to notice
    while names:
        some, names, n = names[:n], names[n:], 2 * n
        built, log = tree.make(some)
        if not built:
            return unbuilt(log)
        for name in some:
            how = fails(tree, name, limit(reach.tests[name]['seconds']))
            if how:
                return 'caught', f'{name} ({how})'
    return None


def run_one(mutant, tree, reach, most):
    there = tree.root / mutant.file
    original = there.read_text()
    names = tests_for(mutant, tree, reach)
    chosen = affordable(names, reach, most)
    before = tree.compiled(mutant.file)
    try:
        there.write_text(mutant.text(tree.root))
        after, log = tree.compile(mutant.file)
        if after is None:
            return unbuilt(log)
        if after and after == before:
            return 'invalid', 'the same code'
        if not names:
            return 'SURVIVED', 'no test runs it'
        return tried(tree, chosen, reach) or ('SURVIVED', f'{len(chosen)} of {len(names)} tests that run it')
    finally:
        there.write_text(original)


def folder_of(file):
    parts = pathlib.PurePath(file).parts
    return '/'.join(parts[:2])


def report(results):
    folders = {}
    for r in results:
        if r['result'] in ('caught', 'SURVIVED'):
            folders.setdefault(folder_of(r['file']), []).append(r['result'] == 'caught')
    print(f'\n{"folder":<24} {"planted":>8} {"caught":>8}')
    for folder, caught in sorted(folders.items()):
        print(f'{folder:<24} {len(caught):>8} {sum(caught):>8} {100 * sum(caught) // len(caught):>4} %')
    every = [c for caught in folders.values() for c in caught]
    if every:
        print(f'{"all":<24} {len(every):>8} {sum(every):>8} {100 * sum(every) // len(every):>4} %')
    for r in results:
        if r['result'] == 'SURVIVED':
            print(f'survived: {r["name"]} {r["file"]}: {r["why"]}')


def stale(mutants):
    """What is to be said of those whose text is not in its file any more."""
    said = []
    for mutant in mutants:
        try:
            mutant.text(ROOT)
        except Stale as why:
            said.append(str(why))
    return said


def to_measure(tree, reach, patterns):
    """Tests that were not measured yet, and those that match: of these alone, if there are any patterns."""
    names = [n for n in tree.tests if n.split('/')[0] not in ELSEWHERE]
    if patterns:
        return [n for n in names if any(fnmatch.fnmatch(n, p) for p in patterns)]
    return [n for n in names if n not in reach.tests]


def alone(work):
    """Until it is closed no other run.py works in this folder."""
    lock = open(work / 'lock', 'w')
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise SystemExit(f'another run.py works in {work}') from None
    return lock


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', nargs='+', default=[''],
                        help='entries whose name or file contains one of these, in this order')
    parser.add_argument('--random', type=int, default=0, metavar='N', help='N generated ones')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--work', type=pathlib.Path, default=ROOT / 'build-mutate')
    parser.add_argument('--map', nargs='*', metavar='PATTERN', help='only measure tests, those that match once more')
    parser.add_argument('--most', type=float, default=120, metavar='SECONDS', help='of tests for one mutant (120)')
    parser.add_argument('--again', action='store_true', help='those that survived, once more')
    parser.add_argument('--report', action='store_true', help='run nothing')
    parser.add_argument('--check', action='store_true', help='only names the entries whose text is not in its file any more')
    args = parser.parse_args()
    mutants = [m for only in args.only for m in from_table() if only in m.name or only in m.file]
    mutants = list({m.name: m for m in mutants}.values())  # each once
    if args.check:
        print('\n'.join(stale(mutants)) or f'{len(mutants)} entries have their place')
        return bool(stale(mutants))
    args.work.mkdir(parents=True, exist_ok=True)
    kept = args.work / 'results.json'
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if args.report:
        keys = [m.key(ROOT) for m in mutants if not stale([m])]
        report([known[k] for k in keys if k in known])
        print('\ngenerated ones:')
        report([r for r in known.values() if r['name'].startswith('random-')])
        return 0
    lock = alone(args.work)  # noqa: F841: until the end
    tree, results = Tree(args.work), []
    reach = Reach(args.work / 'map')
    unmeasured = to_measure(tree, reach, args.map or [])
    if unmeasured and (args.map is not None or not reach.tests):
        reach.measure(tree, unmeasured)
    if args.map is not None:
        return 0
    if args.random:
        chosen = generate.choose(tree.root, args.seed, args.only[0])
        mutants = (Mutant(e, f'random-{args.seed}-{n}') for n, e in enumerate(chosen, 1))
    for mutant in mutants:
        try:
            key = mutant.key(tree.root)
        except Stale as why:
            print(why, flush=True)
            continue
        if key not in known or (args.again and known[key]['result'] == 'SURVIVED'):
            result, by = ('unseen', mutant.unseen) if mutant.unseen else run_one(mutant, tree, reach, args.most)
            known[key] = {'name': mutant.name, 'file': mutant.file, 'why': mutant.why,
                          'result': result, 'by': by}
            kept.write_text(json.dumps(known, indent=1))
        results.append(known[key])
        r = known[key]
        print(f'{mutant.name:<16} {r["result"]:<9} {mutant.file}: {mutant.why} -- {r["by"]}', flush=True)
        if args.random and sum(r['result'] != 'invalid' for r in results) == args.random:
            break
    report(results)
    return any(r['result'] == 'SURVIVED' for r in results)


if __name__ == '__main__':
    sys.exit(main())
