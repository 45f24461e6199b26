"""Plots: a part of a page in its colours, whatever is written in them."""

import re
import xml.etree.ElementTree as ET

import pytest

from pipelines.report.plots import Bar, Stream, bars, curve, flow, histogram, shortened, trend

HOSTILE = "</text><script>$x$ & \x1b[31m\u202e\nü漢"

PLOTS = {
    "bars": lambda name: bars(name, "Bars", [Bar(HOSTILE, 3, "3 & more"), Bar("b", 0, "0")]),
    "flow": lambda name: flow(
        name, "Flow", "7 in", [Stream("kept", 6, "6", True), Stream(HOSTILE, 1, "1", False), Stream("n", 0, "0", False)]
    ),
    "histogram": lambda name: histogram(name, "Histogram", ["1", "2"], [("a", [0.5, 0.5]), ("b", [0, 1])], "bytes"),
    "trend": lambda name: trend(
        name, "Trend", [HOSTILE, *"bcdefgh"], [("a", [1, None, *range(6)]), (HOSTILE, [None] * 8)], marks=[2]
    ),
    "curve": lambda name: curve(name, "Curve", [1, 10, 1000], [0.1, 0.4, 1], "ids"),
}


def parse(svg):
    return ET.fromstring(str(svg).replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))


@pytest.mark.parametrize("kind", PLOTS)
def test_a_plot_is_well_formed_and_has_its_title(kind):
    root = parse(PLOTS[kind]("plot"))
    assert root.get("aria-label") == kind.capitalize()
    assert root.get("viewBox").startswith("0 0 360 ")


@pytest.mark.parametrize("kind", PLOTS)
def test_every_colour_is_one_of_the_page(kind):
    svg = str(PLOTS[kind]("plot"))
    assert set(re.findall(r"#[0-9a-f]{6}\b", svg)) <= {"#000000"}
    assert "var(--" in svg


@pytest.mark.parametrize("kind", PLOTS)
def test_ids_are_of_the_plot_alone(kind):
    svg = str(PLOTS[kind]("one"))
    ids = re.findall(r'\bid="([^"]*)"', svg)
    used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)
    assert all(name.startswith("one-") for name in ids)
    assert {a or b for a, b in used} <= set(ids)


@pytest.mark.parametrize("kind", PLOTS)
def test_the_same_plot_is_the_same_bytes(kind):
    assert PLOTS[kind]("plot") == PLOTS[kind]("plot")


@pytest.mark.parametrize("kind", ["bars", "flow", "trend"])
def test_what_is_hostile_in_a_label_is_text(kind):
    svg = PLOTS[kind]("plot")
    texts = ["".join(text.itertext()) for text in parse(svg).iter() if text.tag.endswith("text")]
    assert shortened(HOSTILE, 24) in texts or shortened(HOSTILE, 30) in texts
    assert not {"\x1b", "\u202e"} & set(svg)


def test_a_flow_of_nothing_is_drawn():
    assert "0 documents in" in flow("flow", "Flow", "0 documents in", [])


def test_a_trend_of_one_place_and_of_none_known_is_drawn():
    assert "v000001" in trend("trend", "Trend", ["v000001"], [("", [4.25])])
    assert "v000002" in trend("trend", "Trend", ["v000001", "v000002"], [("", [None, None])])


def test_what_is_long_is_cut():
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("a\nb", 9) == "a\\nb"
