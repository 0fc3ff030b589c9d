"""The HTML page: well-formed, self-contained, escaped, and the same bytes every time."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from depl.core.corpus import Corpus, Label, LabelSet
from depl.core.errors import DeplError
from depl.core.ranking import Ranking
from depl.evaluation.html import save_figures, write_report
from depl.evaluation.scores import evaluate, popularity


class Page(HTMLParser):
    """Checks that tags nest, and keeps ids, attributes and text."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.attributes = [], [], [], []
        self.rows, self.text = [], ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if "tr" in self.open and data.strip():
            self.rows[-1].append(data)


@pytest.fixture(scope="module")
def reports():
    rng = np.random.default_rng(3)
    n, n_labels = 40, 250
    labels = LabelSet(Label(str(i), f"label {i}") for i in range(n_labels))
    truth = [rng.choice(n_labels, 4, replace=False) for _ in range(n)]
    ids = [str(i) for i in range(n)]
    corpus = Corpus.from_rows(ids, ids, truth, labels)
    counts = np.array([0, 2, 30, 400])[rng.integers(0, 4, n_labels)]
    scores = rng.random((n, n_labels)) + 0.5 * corpus.Y.toarray()
    settings = {"train_counts": counts, "n_train": 1000}
    return [
        evaluate(Ranking.from_scores(scores, 20), corpus, name="sparse", **settings),
        evaluate(popularity(counts, n, 20), corpus, name="popularity", **settings),
    ]


@pytest.fixture(scope="module")
def html(reports, tmp_path_factory):
    """The page about both reports: figures take a second, and most tests only look at it."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    return page_of(path, reports, details={"date": "2026-11-16"})


def page_of(path, reports, title="A page", details=None):
    write_report(path, reports, title=title, details=details or {})
    return path.read_text(encoding="utf-8")


def test_the_page_opens_in_plain_sentences_and_shows_the_mistakes_of_the_best_run(html, reports):
    page = Page(html)
    opening = page.text[: page.text.index("Scores")]
    assert "2026-11-16" in opening
    assert "sparse: On average" in opening
    assert "popularity: On average" in opening
    assert "Mistakes of sparse" in page.text
    mistakes = reports[0].mistakes
    worst = next(row for row in page.rows if row[0].strip() == mistakes.missed[0].label.name)
    assert str(mistakes.missed[0].missed) in worst
    surest = next(x for x in mistakes.examples[0].suggested if not x.right)
    assert f"wrong {surest.score:.2f} {surest.label.name}" in page.text


def test_the_page_is_well_formed_with_unique_ids(html):
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert {"scores", "rare-to-common", "bands", "definitions"} <= set(page.ids)
    for tag in ("title", "h1", "table", "caption", "figure", "figcaption", "svg"):
        assert tag in page.tags


def test_references_inside_the_figures_point_at_ids_of_the_page(html):
    wanted = set(re.findall(r'href="#([^"]+)"', html)) | set(re.findall(r"url\(#([^)]+)\)", html))
    assert wanted
    assert wanted <= set(Page(html).ids)


def test_nothing_comes_from_outside(html):
    namespaces = r'xmlns(:xlink)?="http://www\.w3\.org/[^"]+"'
    assert "://" not in re.sub(namespaces, "", html)
    assert not {"script", "link", "img", "iframe", "object"} & set(Page(html).tags)
    assert "@import" not in html


def test_scores_and_counts_are_on_the_page_with_the_best_in_bold(html, reports):
    rows = {row[0]: row[1:] for row in reversed(Page(html).rows) if row}
    for metric in ("P@1", "PSP@3", "nDCG@5", "R@10", "RP@5"):
        assert rows[metric] == [f"{report.scores[metric]:.2f}" for report in reports]
    assert f"<td><b>{reports[0].scores['P@1']:.2f}</b></td>" in html
    assert f"<b>{reports[1].scores['P@1']:.2f}</b>" not in html
    tail = reports[0].bands["1-9"]
    counts = (
        f" training documents: {tail['labels']} labels, {tail['labels_in_test']} labels in split"
    )
    assert counts in Page(html).text
    assert f"{tail['macroF1@5_in_test']:.2f}" in html
    assert rows["1–100"][2:] == [f"{report.bins[0].macro_f1:.2f}" for report in reports]


@pytest.mark.usefixtures("figures_in_one_size")
def test_label_counts_get_rows_of_their_own_where_runs_differ(tmp_path, reports):
    bands = {name: dict(band) for name, band in reports[1].bands.items()}
    bands["1-9"]["labels"] = 1
    rows = Page(page_of(tmp_path / "r.html", [reports[0], replace(reports[1], bands=bands)])).rows
    assert ["labels", str(reports[0].bands["1-9"]["labels"]), "1"] in rows


@pytest.mark.usefixtures("figures_in_one_size")
def test_names_title_and_details_are_escaped(tmp_path, reports):
    nasty = '<script>alert(\'&"\')</script> id="x" $a$ #1d6fb8 \x00'
    odd = [replace(reports[0], name=nasty), replace(reports[1], name="_日本語 {title}")]
    html = page_of(
        tmp_path / "r.html", odd, title=nasty, details={nasty: nasty, "text": "hands\u00ad-on"}
    )
    page = Page(html)
    assert "script" not in page.tags
    assert "\x00" not in html
    shown = nasty.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    assert page.text.count(shown) >= 5
    assert "_日本語 {title}" in page.text
    assert "x" not in page.ids
    assert "hands-on" in page.text  # a soft hyphen is no damage


def test_figures_have_text_alternatives_with_the_numbers(html, reports):
    page = Page(html)
    alternatives = {value for name, value in page.attributes if name == "aria-label"}
    bars = next(text for text in alternatives if text.startswith("Bar chart"))
    assert f"sparse {reports[0].bands['1-9']['macroF1@5_in_test']:.1f}" in bars
    assert any(text.startswith("Line chart of Macro-F1@5") for text in alternatives)
    roles = [value for name, value in page.attributes if name == "role"]
    assert roles.count("img") == 4  # two figures, each for screens and for phones


def test_colours_follow_light_and_dark_mode(html):
    assert "prefers-color-scheme: dark" in html
    figures = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL))
    assert "var(--s0)" in figures
    assert set(re.findall(r"#[0-9a-f]{6}", figures)) == set()


@pytest.mark.usefixtures("figures_in_one_size")
def test_every_css_variable_that_is_used_is_defined_for_both_modes(tmp_path, reports):
    html = page_of(tmp_path / "r.html", reports * 5)
    light, dark = re.findall(r":root \{(.*?)\}", html, flags=re.DOTALL)
    for name in set(re.findall(r"var\((--\w+)\)", html)):
        assert f"{name}:" in light
        assert f"{name}:" in dark


def test_the_same_reports_give_the_same_bytes(tmp_path, html, reports):
    assert html == page_of(tmp_path / "b.html", reports, details={"date": "2026-11-16"})
    one = [path.read_bytes() for path in save_figures(tmp_path / "one", reports)]
    assert one == [path.read_bytes() for path in save_figures(tmp_path / "two", reports)]


def test_figures_are_saved_as_svg_with_a_legend(tmp_path, reports):
    odd = [reports[0], replace(reports[1], name="_under $x$ & <y>")]
    paths = save_figures(tmp_path / "figures", odd)
    assert [path.name for path in paths] == ["figure1.svg", "bands.svg"]
    for path in paths:
        text = " ".join(ElementTree.parse(path).getroot().itertext())
        assert "sparse" in text
        assert "_under $x$ & <y>" in text
        assert "Macro-F1@5" in text


@pytest.mark.usefixtures("figures_in_one_size")
@pytest.mark.parametrize("runs", [1, 9])
def test_one_run_and_many_runs_fit(tmp_path, reports, runs):
    many = [replace(reports[i % 2], name=f"run number {i}") for i in range(runs)]
    page = Page(page_of(tmp_path / "r.html", many))
    assert all(page.text.count(f"run number {i}") >= 4 for i in range(runs))


@pytest.mark.usefixtures("figures_in_one_size")
def test_reports_at_other_cut_offs_and_of_other_label_sets_stand_side_by_side(tmp_path, reports):
    shorter = replace(reports[1], ks=(1, 3), bins=reports[1].bins[:1])
    page = Page(page_of(tmp_path / "r.html", [reports[0], shorter]))
    assert "–" in [cell for row in page.rows for cell in row]


@pytest.mark.usefixtures("figures_in_one_size")
def test_a_split_without_labels_has_a_page_too(tmp_path):
    labels = LabelSet([])
    corpus = Corpus.from_rows(["1"], ["text"], [[]], labels)
    counts = np.zeros(0, int)
    report = evaluate(Ranking.empty(1, 5), corpus, train_counts=counts, n_train=1)
    assert "The label set is empty" in Page(page_of(tmp_path / "r.html", [report])).text
    assert len(save_figures(tmp_path, [report])) == 2


def test_no_report_is_refused(tmp_path):
    with pytest.raises(DeplError, match="got no report"):
        write_report(tmp_path / "r.html", [], title="", details={})
    with pytest.raises(DeplError, match="got no report"):
        save_figures(tmp_path, [])


def test_counts_have_the_right_number(tmp_path):
    labels = LabelSet([Label("1", "law")])
    corpus = Corpus.from_rows(["1"], ["text"], [[0]], labels)
    ranking = Ranking.from_scores(np.ones((1, 1)), 5)
    report = evaluate(ranking, corpus, train_counts=np.array([3]), n_train=10)
    text = Page(page_of(tmp_path / "r.html", [report])).text
    assert "1 document, 1 label; in percent" in text
    assert "training documents: 1 label, 1 label in split" in text


def test_importing_the_module_does_not_import_what_only_writing_needs():
    code = "import sys, depl.evaluation.html; assert not {'matplotlib', 'jinja2'} & {*sys.modules}"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
