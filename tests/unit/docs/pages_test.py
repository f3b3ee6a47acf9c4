#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Links between the project's pages lead to files and headings that exist, so do the paths that pages
name, and README's figures are those of docs/performance.md."""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FIGURE = re.compile(r"\d+(?:\.\d+)?(?= (?:Gbit/s|MiB/s|M/s|a second))")
ADDRESS = re.compile(r"[a-z]+:")
FOLDERS = ("apps", "config", "docs", "drivers", "lib", "scripts", "tests")
PATH = re.compile(r"(?<![\w/.])(?:%s)/[\w/.\-]*\w" % "|".join(FOLDERS))


def pages():
    yield from ROOT.glob("*.md")
    for folder in ("docs", "tests"):
        yield from (ROOT / folder).rglob("*.md")


def links(text):
    """The targets of relative links, without code."""
    text = CODE.sub("``", FENCE.sub("", text))
    return [target for target in LINK.findall(text) if not ADDRESS.match(target)]


def anchors(text):
    """The anchors that a Git host gives to the headings of a page."""
    seen = {}
    for heading in HEADING.findall(FENCE.sub("", text)):
        name = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", name).replace(" ", "-")
        again = seen.get(name, 0)
        seen[name] = again + 1
        yield f"{name}-{again}" if again else name


def what_is_wrong(page, target):
    path, _, anchor = target.partition("#")
    file = pathlib.Path(os.path.normpath(page.parent / path)) if path else page
    if not file.exists():
        return "no such file"
    if not file.is_relative_to(ROOT):
        return "outside of the project"
    if anchor and (file.suffix != ".md" or anchor not in anchors(file.read_text())):
        return "no such heading"
    return None


def section(text, heading):
    return re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]


class Pages(unittest.TestCase):
    def test_links(self):
        wrong = [f"{page.relative_to(ROOT)}: {target}: {problem}" for page in pages()
                 for target in links(page.read_text())
                 if (problem := what_is_wrong(page, target))]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_paths(self):
        wrong = [f"{page.relative_to(ROOT)}: {path}" for page in pages()
                 for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_every_page_can_be_reached(self):
        """From README, by links."""
        reached, waiting = set(), [ROOT / "README.md", ROOT / "CHANGELOG.md"]
        while waiting:
            page = waiting.pop()
            if page in reached:
                continue
            reached.add(page)
            for target in links(page.read_text()):
                to = pathlib.Path(os.path.normpath(page.parent / target.partition("#")[0]))
                waiting += to.glob("*.md") if to.is_dir() else [to] if to.suffix == ".md" else []
        missed = {page for page in pages() if page.is_relative_to(ROOT / "docs")} - reached
        self.assertEqual(sorted(map(str, missed)), [])

    def test_figures_of_readme(self):
        figures = FIGURE.findall(section((ROOT / "README.md").read_text(), "How fast"))
        known = re.findall(r"\d+(?:\.\d+)?", (ROOT / "docs/performance.md").read_text())
        self.assertGreaterEqual(len(figures), 10)
        self.assertEqual([figure for figure in figures if figure not in known], [])


class Reading(unittest.TestCase):
    """The code that reads the pages does not overlook mistakes."""

    def test_links(self):
        text = "[a](b.md) `[no](c.md)` [d](https://e)\n```\n[no](f.md)\n```\n[g](#h) | [i](j/#k) |"
        self.assertEqual(links(text), ["b.md", "#h", "j/#k"])

    def test_anchors(self):
        text = "# A b\n## `uroce run`, c: d_e\n```\n# no\n```\n## A b\n## [Link](x.md) 2\n"
        self.assertEqual(list(anchors(text)), ["a-b", "uroce-run-c-d_e", "a-b-1", "link-2"])

    def test_what_is_wrong(self):
        page = ROOT / "README.md"
        self.assertEqual(what_is_wrong(page, "docs/nothing.md"), "no such file")
        self.assertEqual(what_is_wrong(page, "#nothing"), "no such heading")
        self.assertEqual(what_is_wrong(page, "docs/#uroce"), "no such heading")
        self.assertEqual(what_is_wrong(page, ".."), "outside of the project")
        self.assertIsNone(what_is_wrong(page, "#uroce"))
        self.assertIsNone(what_is_wrong(page, "docs/decisions/"))

    def test_paths(self):
        text = "`lib/a/b.c: c`, /usr/lib/d, build/apps/e, tests/f/*.py, (docs/g-h.md). lib/i"
        self.assertEqual(PATH.findall(text), ["lib/a/b.c", "tests/f", "docs/g-h.md", "lib/i"])

    def test_figures(self):
        self.assertEqual(FIGURE.findall("78.1 Gbit/s, 150 a second, 64 KiB"), ["78.1", "150"])


if __name__ == "__main__":
    unittest.main()
