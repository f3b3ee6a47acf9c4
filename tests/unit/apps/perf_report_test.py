#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""uroce perf --report: a complete page, with all figures and all points, that needs no other file."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as tree

from engine_rig import UROCE, Terminal

ENOUGH = 200  # seconds; only bounds a hang
QUICK = ["perf", "--quick", "--seconds", "0.02", "--report"]
LOADS = ["RDMA WRITE of 8 octets", "SEND of 8 octets", "RDMA WRITE of 64 KiB"]
SERIES = {
    "throughput": {"RDMA WRITE", "RDMA READ", "SEND", "limit of a core", "kernel TCP"},
    "rate": {"RDMA WRITE", "limit of a core"},
    "latency": {"WRITE of 8 octets", "WRITE of 4 KiB", "limit of a core", "kernel TCP, 8 octets"},
    "loss": {"RDMA WRITE", "RDMA READ", "limit of a core"},
    "loss-latency": {"half of all", "99 %", "99.9 %", "limit of a core"},
}


if shutil.which("ucx_perftest"):
    SERIES["throughput"].add("UCX over TCP")
    SERIES["latency"].add("UCX over TCP, 8 octets")

# Stands in for a ucx_perftest that cannot send large messages.
POOR = """#!/bin/sh
case "$*" in *"-s 4096"*) exit 1 ;; esac
echo iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
echo " 20,1.5,2.0,2.0,4.00,4.00,500000,500000"
"""


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uroce-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = os.environ | {"XDG_RUNTIME_DIR": str(self.folder)}

    def run_report(self, folder, **how):
        return subprocess.run([UROCE, *QUICK, str(folder)], env=self.environment, timeout=ENOUGH,
                              capture_output=True, text=True, **how)

    def test_page(self):
        folder = self.folder / "new"
        end = self.run_report(folder)
        self.assertEqual((end.returncode, end.stdout, end.stderr), (0, f"{folder}/index.html\n", ""))
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["figures.json", "index.html"])
        figures = json.loads((folder / "figures.json").read_text())["figures"]
        self.assertEqual({f["id"]: {s["name"] for s in f["series"]} for f in figures}, SERIES)
        for figure in figures:
            for series in figure["series"]:
                self.assertGreaterEqual(len(series["points"]), 2, (figure["id"], series["name"]))
                for _, y in series["points"]:
                    self.assertGreater(y, 0, (figure["id"], series["name"]))
        cycles = json.loads((folder / "figures.json").read_text())["cycles"]
        self.assertEqual([load["name"] for load in cycles], LOADS)
        for load in cycles:
            self.assertGreater(load["limit"], 0)
            self.assertAlmostEqual(load["all"] / sum(load["stages"].values()), 1, places=3)
        text = (folder / "index.html").read_text()
        self.assertTrue(text.startswith("<!DOCTYPE html>\n"))
        page = tree.fromstring(text.split("\n", 1)[1])  # well-formed
        self.assert_shows(page, figures)
        self.assert_shows_bars(page, cycles)
        self.assert_needs_nothing(page, text)

    def figures_without(self, path):
        """What is missing, and the names of the series, with this PATH."""
        self.environment |= {"PATH": str(path)}
        self.assertEqual(self.run_report(self.folder / "a").returncode, 0)
        page = json.loads((self.folder / "a/figures.json").read_text())
        return page["missing"], {s["name"] for f in page["figures"] for s in f["series"]}

    def test_without_ucx(self):
        missing, names = self.figures_without("/nonexistent")
        self.assertEqual(missing, "UCX over TCP was not measured: ucx_perftest (package ucx-utils) is not "
                         "installed, or does not run.")
        self.assertIn(missing, (self.folder / "a/index.html").read_text())
        self.assertEqual(names & {"UCX over TCP", "UCX over TCP, 8 octets"}, set())

    def test_a_ucx_that_fails(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin/ucx_perftest").write_text(POOR)
        (self.folder / "bin/ucx_perftest").chmod(0o755)
        missing, names = self.figures_without(self.folder / "bin")
        self.assertEqual(missing, "UCX over TCP was not measured: ucx_perftest (package ucx-utils) fails.")
        self.assertNotIn("UCX over TCP", names)

    def test_what_ucx_says(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin/ucx_perftest").write_text(POOR.replace("exit 1", ""))
        (self.folder / "bin/ucx_perftest").chmod(0o755)
        missing, _ = self.figures_without(self.folder / "bin")
        self.assertEqual(missing, "")
        figures = json.loads((self.folder / "a/figures.json").read_text())["figures"]
        points = {s["name"]: s["points"] for f in figures for s in f["series"]}
        self.assertEqual(points["UCX over TCP"], [[8, 0.032], [4096, 16.384], [65536, 262.144]])
        self.assertEqual(points["UCX over TCP, 8 octets"], [[50, 3], [90, 3], [99, 3]])

    def assert_shows(self, page, figures):
        drawn = {f.get("id"): f for f in page.iter("figure")}
        self.assertEqual(list(drawn), [*(f["id"] for f in figures), "cycles"])
        for figure in figures:
            element = drawn[figure["id"]]
            self.assertTrue(element.find("h2").text)
            svg = element.find("svg")
            self.assertGreater(len(list(svg.iter("text"))), 4, "axes with numbers")
            lines = [line.get("points").split() for line in svg.iter("polyline")]
            self.assertEqual([len(line) for line in lines],
                             [len(s["points"]) for s in figure["series"]])
            self.assertEqual(len(list(element.iter("li"))), len(figure["series"]))
            for point in sum(lines, []):
                x, y = map(float, point.split(","))
                self.assertTrue(57 < x < 459 and 11 < y < 251, point)
        self.assertIn("prefers-color-scheme: dark", page.find("head").find("style").text)

    def assert_shows_bars(self, page, cycles):
        (element,) = (f for f in page.iter("figure") if f.get("id") == "cycles")
        bars = list(element.iter("rect"))
        self.assertEqual(len(bars), sum(len(load["stages"]) for load in cycles))
        for label in element.iter("text"):  # those at the left end, where the bars begin
            if label.get("text-anchor") == "end":
                self.assertGreater(float(label.get("x")), 8 * len(label.text), label.text)
        for bar in bars:
            self.assertTrue(0 <= float(bar.get("width")) <= 360.1, bar.get("width"))
            self.assertTrue(bar.find("title").text)
        self.assertEqual(len(list(element.iter("li"))), len(cycles))
        self.assertEqual(len(list(element.iter("tr"))), 1 + len(cycles[0]["stages"]))

    def assert_needs_nothing(self, page, text):
        for element in page.iter():
            self.assertNotIn(element.tag, ("link", "script", "img", "iframe", "object"))
            self.assertFalse({"href", "src", "data", "action"} & set(element.attrib))
        self.assertIsNone(re.search(r"https?:|//|url\(|@import", text))

    def test_progress_on_a_terminal(self):
        terminal = Terminal([UROCE, *QUICK, str(self.folder / "a")], self.environment)
        self.assertRegex(terminal.read_until("RDMA WRITE of 8 octets"), r"1 of (\d+): .*\d+ of \1: ")
        said = terminal.read_until("index.html")
        numbers = re.findall(r"(\d+) of (\d+): ", said)
        self.assertEqual(numbers[-1][0], numbers[-1][1], "all steps were counted")
        self.assertRegex(said, r"\r\x1b\[K[^\r]*index\.html$", "the line is gone")
        self.assertEqual(terminal.status(), 0)

    def test_a_folder_that_cannot_be(self):
        file = self.folder / "file"
        file.touch()
        for folder, says in ((file, "Not a directory"), (self.folder / "no/such", "No such file"),
                             (self.folder / ("x" * 300), "File name too long")):
            end = self.run_report(folder)
            self.assertEqual((end.returncode, end.stdout), (1, ""))
            self.assertRegex(end.stderr, f"^uroce perf: --report {folder}: {says}.*\n$")

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor")
    def test_rates_of_two_cores_stand_beside_their_limit(self):
        folder = self.folder / "two"
        end = subprocess.run([UROCE, *QUICK, str(folder), "--placement", "two"], timeout=ENOUGH,
                             env=self.environment, capture_output=True, text=True)
        self.assertEqual((end.returncode, end.stderr), (0, ""))
        for figure in json.loads((folder / "figures.json").read_text())["figures"]:
            names = {series["name"] for series in figure["series"]}
            rates = figure["id"] in ("throughput", "rate", "loss")
            self.assertEqual("limit of two cores" in names, rates, figure["id"])
            self.assertEqual("limit of a core" in names, not rates, figure["id"])

    def test_nothing_is_left_of_a_report_that_fails(self):
        folder = self.folder / "a"
        end = subprocess.run([UROCE, *QUICK, str(folder), "--placement", "two"], timeout=ENOUGH,
                             env=self.environment, capture_output=True, text=True,
                             preexec_fn=lambda: os.sched_setaffinity(
                                 0, [min(os.sched_getaffinity(0))]))
        self.assertEqual((end.returncode, end.stdout), (1, ""))
        self.assertEqual(end.stderr, "uroce perf: this placement needs two cores\n")
        self.assertEqual(list(folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
