# SPDX-License-Identifier: BSD-3-Clause
"""The table that remembers how each case went on each card."""

from table import Table


class NicTable(Table):
    def __init__(self):
        super().__init__()
        self.went = {}  # case: {card: how}

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

    def markdown(self, nics):
        """A row a case, a column a card. What does not fit a card is `-`."""
        names = [nic.name for nic in nics]
        lines = [["case", *names], ["---"] * (len(names) + 1)]
        for case, went in self.went.items():
            if set(went) & set(names):
                lines.append([f"`{case}`", *(went.get(name, "-") for name in names)])
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)
