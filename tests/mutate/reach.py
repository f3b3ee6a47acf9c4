# SPDX-License-Identifier: BSD-3-Clause
"""Which lines each test runs, and how long it takes: measured once, kept in a file for each test."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

LIMIT = 60  # seconds: a slower test is not for mutants
ELSEWHERE = ('apps', 'docs', 'examples', 'house', 'nic', 'runner')  # tests of something else than lib and drivers


def version(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def counted(tree, folder):
    """What the counters in this folder say: of each file [ran, did not run], both numbers of lines."""
    found = [p.relative_to(folder) for p in pathlib.Path(folder).rglob('*.gcda')]
    for path in found:
        (folder / path.with_suffix('.gcno')).symlink_to(tree.build / path.with_suffix('.gcno'))
    if not found:
        return {}
    said = subprocess.run(['gcov', '--json-format', '--stdout', *map(str, found)], cwd=folder, check=True,
                          stderr=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
    counts = {}
    for unit in map(json.loads, filter(None, said.split('\n'))):
        for entry in unit['files']:
            name = os.path.relpath(os.path.normpath(tree.build / entry['file']), tree.root)
            if name.startswith(('lib/', 'drivers/')):
                lines = counts.setdefault(name, {})
                for line in entry['lines']:
                    n = line['line_number']
                    lines[n] = lines.get(n, 0) + line['count']
    return {name: [[n for n, c in lines.items() if c], [n for n, c in lines.items() if not c]]
            for name, lines in counts.items()}


class Reach:
    def __init__(self, folder):
        self.folder = folder
        self.tests = {}  # name: how (it failed), seconds, lines {file: [version, ran, did not run]}
        for path in sorted(folder.glob('*.json')):
            self.tests[urllib.parse.unquote(path.stem)] = json.loads(path.read_text())

    def measure_one(self, tree, name):
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            place = pathlib.Path(place).resolve()
            place.chmod(0o777)  # for a test's processes of other users
            env = {'GCOV_PREFIX': str(place), 'GCOV_PREFIX_STRIP': str(len(tree.build.parts) - 1),
                   'GCOV_ERROR_FILE': '/dev/null'}
            how, seconds = tree.try_test(name, LIMIT, env)
            lines = {} if how else counted(tree, place)
        lines = {file: [version((tree.root / file).read_text()), *both] for file, both in lines.items()}
        self.tests[name] = {'how': how, 'seconds': round(seconds, 2), 'lines': lines}
        (self.folder / (urllib.parse.quote(name, safe='') + '.json')).write_text(json.dumps(self.tests[name]))

    def measure(self, tree, names):
        """As many at once as there are processors, and one: most tests wait."""
        self.folder.mkdir(parents=True, exist_ok=True)
        built, log = tree.make(names)
        if not built:
            raise SystemExit(f'it does not build without a mutant:\n{log[-2000:]}')
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:
            pieces = {pool.submit(self.measure_one, tree, name): name for name in names}
            for n, piece in enumerate(concurrent.futures.as_completed(pieces), 1):
                piece.result()
                record = self.tests[pieces[piece]]
                print(f'{n}/{len(names)} {pieces[piece]} {record["seconds"]} s {record["how"]}',
                      file=sys.stderr, flush=True)

    def code(self, file, now):
        """The lines of this version that have code."""
        for record in self.tests.values():
            of, *both = record['lines'].get(file, [None, [], []])
            if of == now:
                return {*both[0], *both[1]}
        return set()

    def wanted(self, file, text, first, last):
        """Those of the lines that have code, or the nearest before them in their function; None: any."""
        code, lines = self.code(file, version(text)), text.split('\n')
        wanted = code & set(range(first, last + 1))
        while not wanted and first > 1 and not lines[first - 2].startswith('}'):
            first -= 1
            wanted = code & {first}
        return wanted or None

    def reaching(self, file, text, first, last):
        """Tests that pass and run one of these lines; those that run any of the file, where it is not known
        which lines, or which of this version; all of them, if the file has nothing but data."""
        has_code = any(file in record['lines'] for record in self.tests.values())
        now, wanted = version(text), self.wanted(file, text, first, last)
        for name, record in self.tests.items():
            of, ran, _ = record['lines'].get(file, [None, [], []])
            if not has_code:
                runs = not record['how']
            else:
                runs = wanted & set(ran) if wanted and of == now else ran
            if runs:
                yield name
