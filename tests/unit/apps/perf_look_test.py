#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The page of uroce perf --report in a browser, at two widths, light and dark: it opens without an error, its plots
have their colours, and no element is wider than the page."""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

from engine_rig import UROCE

ENOUGH = 200  # seconds; only bounds a hang
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HEIGHT = 1500
EDGE = 12  # columns at the right that stay empty: the page has a padding of 16


def unfilter(kind, row, above, step):
    """A row of a PNG, in place (RFC 2083, 6)."""
    for i, value in enumerate(row):
        left = row[i - step] if i >= step else 0
        up, corner = above[i], above[i - step] if i >= step else 0
        if kind == 1:
            value += left
        elif kind == 2:
            value += up
        elif kind == 3:
            value += (left + up) // 2
        else:
            estimate = left + up - corner
            value += min((abs(estimate - left), 0, left), (abs(estimate - up), 1, up),
                         (abs(estimate - corner), 2, corner))[2]
        row[i] = value & 255


def pixels(path):
    """The rows of a PNG with 8 bits a colour, each pixel as octets."""
    octets, at, data = path.read_bytes(), 8, b""
    while at < len(octets):
        length, kind = struct.unpack_from(">I4s", octets, at)
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack_from(">IIBB", octets, at + 8)
        elif kind == b"IDAT":
            data += octets[at + 8:at + 8 + length]
        at += length + 12
    assert depth == 8 and colours in (2, 6), (depth, colours)
    step = 3 if colours == 2 else 4
    data, above, rows = zlib.decompress(data), bytearray(width * step), []
    for y in range(height):
        begin = y * (width * step + 1)
        row = bytearray(data[begin + 1:begin + 1 + width * step])
        if data[begin] != 0:
            unfilter(data[begin], row, above, step)
        rows.append([bytes(row[x:x + 3]) for x in range(0, len(row), step)])
        above = row
    return rows


class Look(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([UROCE, "perf", "--quick", "--seconds", "0.02", "--report",
                        str(cls.folder / "page")], check=True, timeout=ENOUGH, stdout=subprocess.DEVNULL,
                       env=os.environ | {"XDG_RUNTIME_DIR": str(cls.folder)})
        cls.page = cls.folder / "page/index.html"

    def look(self, width, dark):
        picture = self.folder / f"{width}-{dark}.png"
        environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "MALLOC_PERTURB_")}
        end = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--no-first-run",
             f"--user-data-dir={self.folder}/profile", "--enable-logging=stderr",
             f"--blink-settings=preferredColorScheme={0 if dark else 1}",
             f"--window-size={width},{HEIGHT}", f"--screenshot={picture}", self.page.as_uri()],
            env=environment | {"HOME": str(self.folder)}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=ENOUGH, check=False)
        self.assertEqual(end.returncode, 0, end.stderr)
        self.assertNotIn("CONSOLE", end.stderr)
        self.assertNotIn("net::ERR", end.stderr)
        rows = pixels(picture)
        self.assertEqual((len(rows[0]), len(rows)), (width, HEIGHT))
        return rows

    def colours(self, dark):
        """Elements of the page, by their names."""
        light, other = re.findall(r":root \{(.*?)\}", self.page.read_text(), re.DOTALL)
        return {name: bytes.fromhex(value) for name, value in
                re.findall(r"--(\w+): #(\w{6})", other if dark else light)}

    def expect(self, width, dark):
        rows, colour = self.look(width, dark), self.colours(dark)
        for y, row in enumerate(rows):
            self.assertTrue(set(row[width - EDGE:]) == {colour["page"]}, f"something sticks out at {y}")
        seen = {pixel for row in rows for pixel in row}
        for name in ("ink", "dim", "c0", "c1", "c2", "beside"):
            self.assertTrue(colour[name] in seen, f"nothing has the colour of {name}")
        return rows, colour

    def plots_on_the_right(self, rows, colour):
        """Whether the first of uroce's own series is drawn in the right half, too."""
        width = len(rows[0])
        return any(row[x] == colour["c0"] and row[x - 1] == colour["c0"]
                   for row in rows[:700] for x in range(width * 6 // 10, width - EDGE))

    def test_wide(self):
        for dark in (False, True):
            rows, colour = self.expect(1400, dark)
            self.assertTrue(self.plots_on_the_right(rows, colour), "two plots side by side")

    def test_narrow(self):
        """As on a telephone."""
        for dark in (False, True):
            self.expect(400, dark)


if __name__ == "__main__":
    if BROWSER is None:
        print("needs chromium")
        sys.exit(77)
    unittest.main()
