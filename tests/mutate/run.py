#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plants mistakes in the code, one at a time, and sees which test notices.

run.py                      every entry of tests/mutate/table/*.toml
run.py --only cq_ring       those whose name contains this
run.py --random 50 --seed 1 generated ones: comparisons, constants, statements left out or swapped
run.py --again              those once more that survived
run.py --check              only names the entries whose text is not once in its file (house/mutants)
run.py --report             the table of what was run so far, by folder
run.py --build build        begins with a copy of this finished build

The checkout is not touched: its files are copied to a folder of its own (--work), built there, and
only what depends on the mutated file is built again. A mutant is caught when a test fails, hangs or
crashes, or when the code does not even compile as it should (an assertion of the compiler). The tests
of a file are those of its folder (tests_of.toml), those that an entry names and the file's own first;
each is built when its turn comes. What was run is kept in WORK/results.json by its content: begun again, run.py goes on
where it stopped.

An entry of the table has `file`, `find` (once in the file), `replace`, `why` (what goes wrong), and may
have `tests` (to be tried first) and `unseen`: why no test can notice it."""
import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib

import generate

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PATIENCE = 120  # seconds: then a test hangs


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

    def key(self, root):
        return hashlib.sha256(f'{self.file}\0{self.text(root)}'.encode()).hexdigest()[:20]


def from_table():
    for path in sorted((HERE / 'table').glob('*.toml')):
        for n, entry in enumerate(tomllib.loads(path.read_text())['mutant'], 1):
            yield Mutant(entry, f'{path.stem}-{n}')


class Tree:
    """A copy of the checkout, and its build."""

    def __init__(self, work, finished):
        self.root = work.resolve() / 'tree'
        self.build = self.root / 'build'
        self.builds = False  # anything
        self.passes = {}
        self.objects = {}  # of files as they are
        self.copied = work / 'copied'  # it is there if the build is
        fresh = finished and not self.build.exists()
        rules = self.copy(shutil.copy2 if fresh else shutil.copy)
        if rules and self.copied.exists():
            shutil.rmtree(self.build)  # what would make it anew makes the original's
            self.copied.unlink()
        if fresh:
            shutil.copytree(finished, self.build, symlinks=True)
            os.utime(self.build / 'build.ninja')
            self.copied.touch()
        if not (self.build / 'build.ninja').exists():
            subprocess.run(['meson', 'setup', str(self.build), str(self.root)], check=True,
                           stdout=subprocess.DEVNULL)
        subprocess.run(['ninja', '-C', str(self.build), 'build.ninja'], check=True,
                       stdout=subprocess.DEVNULL)  # with the tests that are new
        self.tests = {t['name']: t for t in self.ask('--tests')}
        self.files = {t['id']: t['filename'] for t in self.ask('--targets')}

    def copy(self, how):
        """Whether a meson.build changed."""
        rules = False
        names = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.split('\n')
        for name in filter(None, names):
            here, there = ROOT / name, self.root / name
            if not here.is_file():
                continue
            if there.exists() and there.read_bytes() == here.read_bytes():
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            how(here, there)  # newer than what was built of the old one, or as old as it was
            rules |= here.name in ('meson.build', 'meson_options.txt')
        return rules

    def ask(self, what):
        text = subprocess.run(['meson', 'introspect', what, str(self.build)], check=True,
                              capture_output=True, text=True).stdout
        if f'"{self.root}/' in text:
            return json.loads(text)
        # Of a copied build: each path of a string that has several, or some words, is the copy's.
        return json.loads(re.sub(rf'(?<![\w/.-]){re.escape(str(ROOT))}/', f'{self.root}/', text))

    def targets(self, names):
        paths = set()
        for name in names:
            for target in self.tests[name]['depends']:
                paths |= set(self.files.get(target, []))
            paths.add(self.tests[name]['cmd'][0])
        return sorted(os.path.relpath(p, self.build) for p in paths
                      if p.startswith(str(self.build)))

    def make(self, names):
        run = subprocess.run(['ninja', '-C', str(self.build), *self.targets(names)],
                             capture_output=True, text=True)
        return run.returncode == 0, run.stdout

    def try_test(self, name, limit):
        """'': it passed; else how it failed."""
        test = self.tests[name]
        env = {**os.environ, **test['env']}
        process = subprocess.Popen(test['cmd'], cwd=test['workdir'] or self.build, env=env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:  # its own session: what a mutant leaves behind ends with it
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if status is None:
            return 'hangs'
        return '' if status in (0, 77) else f'status {status}'

    def limit(self, name):
        return min(self.tests[name]['timeout'] or PATIENCE, PATIENCE)

    def passes_without(self, name):
        """Whether it passes without a mutant, whose file is as it was by now."""
        if name not in self.passes:
            built, log = self.make([name])
            if not built:
                raise SystemExit(f'{name} does not build without a mutant:\n{log[-2000:]}')
            self.passes[name] = not self.try_test(name, self.limit(name))
        return self.passes[name]


def tests_for(mutant, tree):
    """The tests that the entry names, the file's own, and those of the folder in the order of tests_of.toml."""
    rules = tomllib.loads((HERE / 'tests_of.toml').read_text())
    best = max((f for f in rules if mutant.file.startswith(f)), key=len)
    names = []
    own = [f'*/{pathlib.PurePath(mutant.file).stem}']
    for pattern in mutant.tests + own + rules[best]:
        names += [n for n in sorted(tree.tests) if fnmatch.fnmatch(n, pattern) and n not in names]
    return names


def code_of(path):
    """The code of an object, without debugging information."""
    with tempfile.NamedTemporaryFile() as stripped:  # a pipe would stay empty
        subprocess.run(['objcopy', '-g', str(path), stripped.name], check=True)
        return hashlib.sha256(pathlib.Path(stripped.name).read_bytes()).hexdigest()


def object_of(tree, file):
    """code_of the object of a file as it is now; None: it has none, or does not compile."""
    for entry in json.loads((tree.build / 'compile_commands.json').read_text()):
        if (tree.build / entry['file']).resolve() == tree.root.resolve() / file:
            run = subprocess.run(['ninja', '-C', str(tree.build), entry['output']],
                                 stdout=subprocess.DEVNULL)
            return code_of(tree.build / entry['output']) if run.returncode == 0 else None
    return None


def object_without(tree, file):
    """object_of the file without a mutant."""
    if file not in tree.objects:
        tree.objects[file] = object_of(tree, file)
    return tree.objects[file]


def unbuilt(log):
    """The report on a mutant that does not compile."""
    if 'static assertion failed' in log:
        return 'caught', 'the compiler'
    return 'invalid', 'it does not compile'


def plant(mutant, tree, first):
    """The report that can be made at once; None: the tests decide."""
    before = object_without(tree, mutant.file) if mutant.at is not None else None
    (tree.root / mutant.file).write_text(mutant.text(tree.root))
    built, log = tree.make([first])
    if not built:
        if unbuilt(log)[0] == 'invalid' and not tree.builds:
            raise SystemExit(f'nothing was built yet, and this fails:\n{log[-2000:]}')
        return unbuilt(log)
    tree.builds = True
    if before is not None and object_of(tree, mutant.file) == before:
        return 'invalid', 'the same code'
    return None


def run_one(mutant, tree):
    """A test that fails counts if it passes without the mutant."""
    there = tree.root / mutant.file
    original = there.read_text()
    names = tests_for(mutant, tree)
    try:
        said = plant(mutant, tree, names[0])
        while said is None and names:
            name = names.pop(0)
            built, log = tree.make([name])
            if not built:  # the tests before it do not need the file
                return unbuilt(log)
            how = tree.try_test(name, tree.limit(name))
            if not how:
                continue
            there.write_text(original)
            if tree.passes_without(name):
                return 'caught', f'{name} ({how})'
            said = plant(mutant, tree, names[0]) if names else None
        return said or ('SURVIVED', 'by the tests of its folder')
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
    """The report on entries whose text is no longer in their file."""
    said = []
    for mutant in mutants:
        try:
            mutant.text(ROOT)
        except Stale as why:
            said.append(str(why))
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', nargs='+', default=[''],
                        help='entries whose name or file contains one of these, in this order')
    parser.add_argument('--random', type=int, default=0, metavar='N', help='N generated ones')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--work', type=pathlib.Path, default=ROOT / 'build-mutate')
    parser.add_argument('--build', type=pathlib.Path,
                        help='a finished build of this checkout, which is copied: saves the first')
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
    tree, results = Tree(args.work, args.build), []
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
            result, by = ('unseen', mutant.unseen) if mutant.unseen else run_one(mutant, tree)
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
