# SPDX-License-Identifier: BSD-3-Clause
"""The table that remembers the result of each case on each card, in a page that may have other text around it."""

import time

from table import Table

BEGIN = "<!-- written by tests/nic/run.py --table: -->\n"
END = "<!-- end of the table -->\n"
NEVER = "not run"


def cells_of(text):
    """{case: {card: how}} of a table as markdown() writes it."""
    lines = [[word.strip() for word in line.strip().strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    if len(lines) < 2:
        return {}
    cards = lines[0][1:]
    return {line[0].strip("`"): dict(zip(cards, line[1:])) for line in lines[2:]}


class NicTable(Table):
    def __init__(self):
        super().__init__()
        self.went = {}  # case: {card: how}
        self.began = time.monotonic()

    def note(self, name, how):
        card, _, case = name.partition("/")
        self.went.setdefault(case, {})[card] = how

    def fail(self, name, failure):
        self.note(name, "**fails**")
        super().fail(name, failure)

    def skip(self, name, reason):
        self.note(name, "skipped")
        super().skip(name, reason)

    def run(self, name, function):
        passed, before = self.passed, self.failed
        result = super().run(name, function)
        if self.passed > passed and self.failed == before:
            self.note(name, "ok")
        return result

    def markdown(self, nics, cases, earlier):
        """A row for each case, a column for each card. `-`: the case does not fit the card. `earlier`: cells of earlier
        runs."""
        names = [nic.name for nic in nics]
        lines = [["case", *names], ["---"] * (len(names) + 1)]
        for case in cases:
            went = {**earlier.get(case.name, {}), **self.went.get(case.name, {})}
            lines.append([f"`{case.name}`", *(went.get(nic.name, NEVER) if case.fits(nic) else "-"
                                              for nic in nics)])
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def summary(self, nics, cases):
        ran = self.passed + self.failed + self.skipped
        there = sum(case.fits(nic) for case in cases for nic in nics)
        rest = "all of them in one go" if ran >= there else "the other cells are of earlier runs"
        return (f"Last run, on {time.strftime('%-d %B %Y')}: {ran} of {there} cases in "
                f"{time.monotonic() - self.began:.0f} s, {self.passed} passed, {self.failed} failed, "
                f"{self.skipped} skipped; {rest}.\n")

    def write(self, path, nics, cases):
        """Replaces the table of the page, if it has one, and keeps the cells of cases that did not run now."""
        page = path.read_text() if path.exists() else ""
        if BEGIN not in page:
            page += BEGIN + END
        before, _, rest = page.partition(BEGIN)
        old, _, after = rest.partition(END)
        table = self.markdown(nics, cases, cells_of(old))
        path.write_text(f"{before}{BEGIN}{table}\n{self.summary(nics, cases)}{END}{after}")
