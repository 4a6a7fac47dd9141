"""A plan in a notebook's cell."""

import re
from html import unescape
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import topos_core as tp
from topos_core.document.formats import notebook


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.fixture
def plan():
    return tp.plan(tp.trace(softmax, tp.f32[8, 64]), cost="always")


def exported_by(monkeypatch, *points):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **wanted: points)


PAGE = EntryPoint("html", "topos_web.export:html", "topos.exporters")


def test_the_page_stands_in_a_frame_that_sees_nothing_else(plan, monkeypatch):
    exported_by(monkeypatch, PAGE)
    shown = plan._repr_html_()
    assert re.match(r'<iframe title="plan" sandbox="allow-scripts allow-downloads allow-popups" srcdoc="', shown)
    page = unescape(re.search(r'srcdoc="([^"]*)"', shown)[1])
    assert page.startswith("<!doctype html>")
    assert '"pattern":"softmax"' in page
    assert "allow-same-origin" not in shown.partition(" srcdoc=")[0]


@pytest.mark.parametrize(
    "points", [(), (EntryPoint("html", "topos_gone.export:html", "topos.exporters"),)], ids=["none", "lost"]
)
def test_a_table_stands_in_where_no_page_is_installed(plan, monkeypatch, points):
    exported_by(monkeypatch, *points)
    shown = plan._repr_html_()
    assert "<script" not in shown
    assert "<iframe" not in shown
    assert '<td style="text-align: left">taken</td>' in shown
    assert "1 taken, 0 declined" in shown


def test_too_large_a_page_is_a_table(plan, monkeypatch):
    exported_by(monkeypatch, PAGE)
    monkeypatch.setattr(notebook, "LARGEST_PAGE", 1000)
    assert plan._repr_html_().startswith("<div><b>")


def test_nothing_of_a_model_is_markup_in_the_table(plan, monkeypatch):
    exported_by(monkeypatch)
    document = plan.document()
    document = {
        **document,
        "target": "<script>alert(1)</script>",
        "regions": [{**r, "headline": "<b>", "reason": "<i>"} for r in document["regions"]],
    }
    shown = notebook.table(document)
    assert "<script>" not in shown
    assert "&lt;i&gt;" in shown
