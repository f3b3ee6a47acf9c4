# SPDX-License-Identifier: BSD-3-Clause
"""A drawing of what engines held over time: one panel for each metric, one line for each engine."""

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 900, 150, 70, 20, 60, 44
COLORS = ("#2f7ed8", "#d9772b", "#2e9e5b", "#c0489a", "#8a6d3b", "#7a5fd0")

STYLE = """
svg { color-scheme: light dark; }
.back { fill: #ffffff; } .text { fill: #222222; }
.grid { stroke: #d8d8d8; } .kill { stroke: #b05050; }
@media (prefers-color-scheme: dark) {
 .back { fill: #14171a; } .text { fill: #dddddd; }
 .grid { stroke: #3a3f44; } .kill { stroke: #d07070; }
}
text { font: 12px sans-serif; } .line { fill: none; stroke-width: 1.3; }
.kill { stroke-dasharray: 2 3; }
"""


def step(most):
    """A round distance, of which at least two and at most five are below it."""
    size = 1
    while True:
        for times in (1, 2, 5):
            if size * times * 5 >= most:
                return size * times
        size *= 10


def text(x, y, what, anchor="start"):
    return f'<text class="text" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{what}</text>'


class Panel:
    def __init__(self, top, title, most, end):
        self.top, self.title, self.most, self.end = top, title, max(most * 1.08, 1), max(end, 1)

    def x(self, at):
        return LEFT + (WIDTH - LEFT - RIGHT) * at / self.end

    def y(self, value):
        return self.top + PANEL * (1 - value / self.most)

    def frame(self):
        yield text(LEFT, self.top - 8, self.title)
        size, value = step(self.most), 0
        while value <= self.most:
            y = self.y(value)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield text(LEFT - 6, y + 4, f"{value:g}", "end")
            value += size

    def minutes(self):
        size, value = step(self.end / 60), 0
        while value <= self.end / 60:
            yield text(self.x(value * 60), self.top + PANEL + 16, f"{value:g}", "middle")
            value += size

    def line(self, points, color):
        """Without what nobody sees: points of the same place, and those between two of the same height."""
        seen = []
        for at, value in points:
            point = round(self.x(at)), round(self.y(value))
            if len(seen) > 1 and seen[-2][1] == seen[-1][1] == point[1]:
                seen.pop()
            if not seen or seen[-1] != point:
                seen.append(point)
        path = " ".join(f"{'L' if i else 'M'}{x} {y}" for i, (x, y) in enumerate(seen))
        return f'<path class="line" stroke="{color}" d="{path}"/>'


def draw(path, title, samples, kills, metrics):
    """`samples`: (seconds, engine, pid, values); `metrics`: (name, title)."""
    samples = sorted(samples, key=lambda s: s[0])
    engines = sorted({name for _, name, _, _ in samples})
    colors = dict(zip(engines, COLORS))
    end = max((at for at, _, _, _ in samples), default=1)
    height = TOP + len(metrics) * (PANEL + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">',
           f"<style>{STYLE}</style>", f'<rect class="back" width="{WIDTH}" height="{height}"/>',
           text(LEFT, 18, title)]
    for i, name in enumerate(engines):
        x = LEFT + i * 120
        out += [f'<rect x="{x}" y="26" width="12" height="12" fill="{colors[name]}"/>',
                text(x + 17, 36, name)]
    for i, (metric, what) in enumerate(metrics):
        top = TOP + i * (PANEL + GAP) + 6
        panel = Panel(top, what, max((v[metric] for *_, v in samples), default=1), end)
        out += panel.frame()
        for at, _ in kills:
            out.append(f'<path class="kill" d="M{panel.x(at):.1f} {top}v{PANEL}"/>')
        for name, pid in dict.fromkeys((name, pid) for _, name, pid, _ in samples):
            points = [(at, v[metric]) for at, n, p, v in samples if (n, p) == (name, pid)]
            out.append(panel.line(points, colors[name]))
        out += panel.minutes()
    out.append("</svg>")
    path.write_text("\n".join(out) + "\n")
