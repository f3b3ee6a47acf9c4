# SPDX-License-Identifier: BSD-3-Clause
"""Sessions at uroced's prompt as pages of docs/ show them, and how they are replayed."""

import pathlib
import re

from engine_rig import ENOUGH, Terminal, numbers_hidden, until

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
PROMPT = "uroced> "
BLOCK = re.compile(r"^```\n\$ (uroced .*?-i)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Session:
    """`line` starts uroced; `parts` are (command, lines of its answer). The first part has what uroced prints by
    itself."""

    def __init__(self, line, text):
        self.line = line.replace("\\\n", " ")
        first, *parts = re.split(r"^uroced> ", text, flags=re.MULTILINE)
        self.parts = [(None, first.splitlines())]
        for part in parts:
            command, *answer = part.splitlines()
            self.parts.append((command, answer))


def sessions(page):
    return [Session(*block) for block in BLOCK.findall((DOCS / page).read_text())]


def open_prompt(words, environment):
    """A terminal at its first prompt, and what was printed before it."""
    terminal = Terminal(words, environment)
    greeting = terminal.read_until(PROMPT)
    terminal.await_raw()
    return terminal, greeting


def ask(terminal, text):
    """The text between the command and the next prompt."""
    terminal.write(text + "\n")
    terminal.read_until("\n")  # the command's echo
    return terminal.read_until(PROMPT).removesuffix(PROMPT).replace("\r", "")


def replay(session, terminal, adapt, sinks):
    """
    Every command of the session but `quit`, and whether it answers as on the page; yields behind each.
    adapt(): the test's names in the place of the page's. sinks: numbers of queue pairs on the page, and
    those of this run.
    """
    for command, wanted in session.parts[1:-1]:
        own = adapt(re.sub(r"0x\w+", lambda n: sinks.get(n[0], n[0]), command))
        answers = []

        def as_on_the_page():
            answers.append(ask(terminal, own))
            return hidden(answers[-1].splitlines()) == hidden(wanted)

        # What shows may be asked again, as counters need a moment. So may what was refused: it changed
        # nothing.
        if not as_on_the_page() and (own.startswith("show") or answers[-1].startswith(own)):
            try:
                until(as_on_the_page, command)
            except AssertionError:
                pass
        assert hidden(answers[-1].splitlines()) == hidden(wanted), \
            f"{command}: not within {ENOUGH} s:\n{answers[-1]}\nbut on the page:\n" + "\n".join(wanted)
        if number := re.search(r"rx: queue pair (\w+)", answers[-1]):
            sinks[re.search(r"rx: queue pair (\w+)", "\n".join(wanted))[1]] = number[1]
        yield command


def hidden(lines):
    """Paths, MAC addresses and numbers, which differ from run to run."""
    def of(line):
        line = re.sub(r"/tmp/(?:uroce-test-\w+/)?", "/tmp/", line)
        return numbers_hidden(re.sub(r"\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b", "MAC", line))
    return [of(line) for line in lines]
