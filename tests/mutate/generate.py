# SPDX-License-Identifier: BSD-3-Clause
"""Small mistakes of a kind, found by patterns: no parser, as what does not compile is left out."""
import random
import re

FOLDERS = ('lib/base', 'lib/wire', 'lib/memory', 'lib/transport', 'lib/cm', 'lib/queue', 'lib/lcore',
           'lib/control', 'lib/engine', 'lib/client', 'lib/verbs', 'lib/rdmacm', 'drivers/client_memory',
           'drivers/neighbour')
OTHER = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '&&': '||', '||': '&&',
         '+=': '-=', '-=': '+='}
OPERATOR = re.compile(r'(?<= )(<=|>=|==|!=|&&|\|\||\+=|-=|<|>)(?= )')
NUMBER = re.compile(r'(?<=[ (\[-])\d+(?=[ ,;)\]u])')
STATEMENT = re.compile(r'^\t+(?!return\b|break\b|continue\b|goto\b|case\b|default\b|static\b|const\b|'
                       r'struct\b|enum\b|uint|int\b|bool\b|size_t\b|nanotime\b|char\b|void\b|//|\*|/\*)'
                       r'[a-z_*(][^\n{}]*;$', re.M)


# A member or variable gets a value, and nothing is called.
ASSIGNMENT = re.compile(r'\s*(?:\w+(?:\.|->))*(\w+) (?:[|&+-]?=) ([^(=*]*);')


def code_only(text):
    """Comments, strings, lines of the preprocessor and assertions as blanks, everything else where it was: a
    program in which an assertion holds does the same without it."""
    for hidden in (r'/\*.*?\*/|"(?:\\.|[^"\n])*"|^#(?:[^\n]*\\\n)*[^\n]*', r'^\t+assert\([^;]*;'):
        text = re.sub(hidden, lambda m: re.sub(r'[^\n]', ' ', m.group()), text, flags=re.S | re.M)
    return text


def operators(code, text):
    for m in OPERATOR.finditer(code):
        yield m.start(), m.group(), OTHER[m.group()], f'{m.group()} is {OTHER[m.group()]}'


def constants(code, text):
    for m in NUMBER.finditer(code):
        other = str(int(m.group()) + 1)
        yield m.start(), m.group(), other, f'{m.group()} is {other}'


def deletions(code, text):
    for m in STATEMENT.finditer(code):
        line = text[m.start():m.end()]
        yield m.start(), line, '\t;', f'left out: {line.strip()}'


def are_independent(first, second):
    """Assignments that mean the same in either order, as neither names what the other one changes."""
    one, two = ASSIGNMENT.fullmatch(first), ASSIGNMENT.fullmatch(second)
    return bool(one and two and one[1] not in re.findall(r'\w+', second) and
                two[1] not in re.findall(r'\w+', first))


def swaps(code, text):
    lines = list(STATEMENT.finditer(code))
    for a, b in zip(lines, lines[1:]):
        if a.end() + 1 != b.start():
            continue
        first, second = text[a.start():a.end()], text[b.start():b.end()]
        if first != second and not are_independent(first, second):
            yield (a.start(), text[a.start():b.end()], second + '\n' + first,
                   f'swapped: {first.strip()} {second.strip()}')


def choose(root, seed, only=''):
    """Entries without end, a file by chance in proportion to its length, then a kind, then a place."""
    dice = random.Random(seed)
    files = [p for f in FOLDERS for p in sorted((root / f).rglob('*.c')) if only in str(p)]
    texts = {p: p.read_text() for p in files}
    seen = set()
    while True:
        path = dice.choices(files, weights=[len(texts[p]) for p in files])[0]
        kind = dice.choice((operators, constants, deletions, swaps))
        places = list(kind(code_only(texts[path]), texts[path]))
        if not places:
            continue
        at, find, replace, why = dice.choice(places)
        if (path, at, replace) in seen:
            continue
        seen.add((path, at, replace))
        line = texts[path].count('\n', 0, at) + 1
        yield {'file': str(path.relative_to(root)), 'find': find, 'replace': replace, 'at': at,
               'why': f'line {line}: {why}'}
