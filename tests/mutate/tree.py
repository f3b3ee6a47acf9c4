# SPDX-License-Identifier: BSD-3-Clause
"""A copy of the checkout, its build, and its tests."""
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What the counters of a mutant would write goes nowhere.
UNCOUNTED = {'GCOV_PREFIX': '/dev/null', 'GCOV_ERROR_FILE': '/dev/null'}


def end_session(leader):
    """Ends what a test left behind, also in process groups of its own."""
    for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = stat.read_text().rpartition(')')[2].split()
            if int(fields[3]) == leader:
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):  # it ended meanwhile
            pass


def code_of(path):
    """What an object does, without what a debugger reads."""
    with tempfile.NamedTemporaryFile() as stripped:  # a pipe would stay empty
        subprocess.run(['objcopy', '-g', str(path), stripped.name], check=True)
        return hashlib.sha256(pathlib.Path(stripped.name).read_bytes()).hexdigest()


class Tree:
    def __init__(self, work):
        self.root = work.resolve() / 'tree'
        self.build = self.root / 'build'
        self.copy()
        if not (self.build / 'build.ninja').exists():
            env = {**os.environ, 'CC': str(HERE / 'cc.sh')}
            subprocess.run(['meson', 'setup', str(self.build), str(self.root)], check=True, env=env,
                           stdout=subprocess.DEVNULL)
        subprocess.run(['ninja', '-C', str(self.build), 'build.ninja'], check=True,
                       stdout=subprocess.DEVNULL)  # with the tests that are new
        self.tests = {t['name']: t for t in self.ask('--tests')}
        self.files = {t['id']: t['filename'] for t in self.ask('--targets')}
        self.commands = {os.path.normpath(c['file'].removeprefix('../')): shlex.split(c['command'])
                         for c in json.loads((self.build / 'compile_commands.json').read_text())}

        self.objects = {}  # of files as they are

    def copy(self):
        names = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.split('\n')
        for name in filter(None, names):
            here, there = ROOT / name, self.root / name
            if not here.is_file() or there.exists() and there.read_bytes() == here.read_bytes():
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)  # newer than what was built of the old one

    def ask(self, what):
        return json.loads(subprocess.run(['meson', 'introspect', what, str(self.build)], check=True,
                                         capture_output=True, text=True).stdout)

    def targets(self, names):
        paths = set()
        for name in names:
            for target in self.tests[name]['depends']:
                paths |= set(self.files.get(target, []))
            paths.add(self.tests[name]['cmd'][0])
        return sorted(os.path.relpath(p, self.build) for p in paths
                      if p.startswith(str(self.build)))

    def make(self, names):
        """Builds these tests: whether it could, and what was said."""
        run = subprocess.run(['ninja', '-C', str(self.build), *self.targets(names)],
                             capture_output=True, text=True)
        return run.returncode == 0, run.stdout

    def compile(self, file):
        """code_of() the file as it is now, compiled as it is shipped, and what the compiler said: None, if
        it does not compile; '' of a file that is not compiled by itself."""
        if file not in self.commands:
            return '', ''
        command = self.commands[file][1:self.commands[file].index('-MD')]
        with tempfile.NamedTemporaryFile(suffix='.o') as made:
            run = subprocess.run(['cc', *command, '-O2', '-g0', '-o', made.name, '-c', f'../{file}'],
                                 cwd=self.build, capture_output=True, text=True)
            return (code_of(made.name) if run.returncode == 0 else None), run.stderr

    def compiled(self, file):
        """code_of() the file without a mutant."""
        if file not in self.objects:
            self.objects[file] = self.compile(file)[0]
        return self.objects[file]

    def try_test(self, name, limit, more=UNCOUNTED):
        """How it failed, '' if it passed; and the seconds that it took."""
        test = self.tests[name]
        begin = time.monotonic()
        process = subprocess.Popen(test['cmd'], cwd=test['workdir'] or self.build,
                                   env={**os.environ, **test['env'], **more},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_session(process.pid)
            process.wait()
        seconds = time.monotonic() - begin
        if status is None:
            return 'hangs', seconds
        return {0: '', 77: 'skipped'}.get(status, f'status {status}'), seconds
