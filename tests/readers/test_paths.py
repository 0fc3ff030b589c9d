"""Labels that are paths, and other habits of tables from shops: HTML, copies, article numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depl.readers import read
from depl.readers.columns import Columns
from depl.readers.corpora import read_records
from depl.readers.documents import Documents
from depl.readers.markup import without_markup
from depl.readers.paths import above, find_path_separator, tidy_path

PATHS = ("Home > Bath", "Home > Bath > Soap", "Home>Kitchen", "Garden > Tools", "Garden > Plants")
STEPS = st.text("abcde &,", min_size=1, max_size=6).filter(lambda x: x.strip() == x and x)


def rows(paths: tuple[str, ...] = PATHS) -> list[dict[str, str]]:
    return [{"text": f"product number {i}", "category": path} for i, path in enumerate(paths * 3)]


def test_what_is_above_a_path_is_broader_than_it():
    labels = {x.id: x for x in read(rows()).labels}
    assert {id: x.broader for id, x in labels.items()} == {
        "Home > Bath": ("Home",),
        "Home > Bath > Soap": ("Home > Bath",),
        "Home > Kitchen": ("Home",),
        "Garden > Tools": ("Garden",),
        "Garden > Plants": ("Garden",),
    }
    assert all(x.name == id for id, x in labels.items())


def test_frames_and_files_are_read_alike(tmp_path: Path):
    path = tmp_path / "shop.csv"
    pd.DataFrame(rows()).to_csv(path, index=False)
    assert list(read(path).labels) == list(read(pd.DataFrame(rows())).labels)


@pytest.mark.parametrize(
    ("paths", "separator"),
    [
        (("a/b", "a/c", "a/d/e", "f/g", "f/h", "f/i"), "/"),
        (("a::b", "a::c", "a::d", "e::f", "e::g", "e::h"), "::"),
        (("Wine", "Oil", "Zinc > tin"), ""),
        (("TCP/IP", "AC/DC", "and/or", "his/her", "I/O"), ""),
        (("Home > Bath",), ""),
        ((), ""),
    ],
)
def test_only_what_makes_a_tree_is_a_path(paths: tuple[str, ...], separator: str):
    assert find_path_separator(paths) == separator


def test_the_separator_of_paths_may_be_given_or_refused():
    few = ("a / b", "a / c")
    assert [x.broader for x in read(rows(few), path_separator="/").labels] == [("a",), ("a",)]
    assert [x.broader for x in read(rows(), path_separator="").labels] == [()] * len(PATHS)
    assert "Home>Kitchen" in read(rows(), path_separator="").labels.ids  # as it was written


def test_steps_with_commas_are_not_several_labels():
    paths = ("Clothing, Shoes > Shirts", "Clothing, Shoes > Hats", "Toys, Games > Puzzles")
    assert set(read(rows(paths)).labels.ids) == set(paths)
    several = ("A > B, A > C", "A > C, A > D", "A > D, B > E")
    assert set(read(rows(several)).labels.ids) == {"A > B", "A > C", "A > D", "B > E"}


def test_several_paths_in_a_cell(tmp_path: Path):
    paths = ("Home > Bath; Garden > Tools", "Home > Bath", "Garden > Plants; Home > Bath")
    assert read(rows(paths)).labels.ids == ["Garden > Plants", "Garden > Tools", "Home > Bath"]


def test_another_table_is_read_as_the_run_was(tmp_path: Path):
    """Where the run has paths, a table too small to show it has them, too."""
    run = read(rows()).labels
    kept = Columns(("text",), ("category",), separator="", path=" > ")
    assert Columns.from_json(kept.to_json()) == kept
    path = tmp_path / "more.csv"
    path.write_text("text,category\nsoap,Home>Bath >Soap\n")
    data, taken = read_records(path, Columns(), kept=kept, known=run)
    assert data.labels.ids == ["Home > Bath > Soap"]
    assert taken is not None
    assert taken.columns.labels_said == "category, one a cell; paths with steps between '>'"
    without = Columns(("text",), ("category",), separator="")
    data, _ = read_records(path, Columns(), kept=without, known=run)
    assert data.labels.ids == ["Home>Bath >Soap"]


def test_a_vocabulary_says_itself_what_is_broader(tmp_path: Path):
    vocabulary = tmp_path / "categories.csv"
    lines = [f"{path.replace('>', ' > ').replace('  ', ' ')},c{i}" for i, path in enumerate(PATHS)]
    vocabulary.write_text("\n".join(["name,id", *lines]))
    assert all(not x.broader for x in read(rows(), vocabulary=vocabulary).labels)


@given(st.lists(STEPS, min_size=1, max_size=4), st.sampled_from([" > ", ">", "/", "::"]))
def test_a_path_is_its_steps_however_it_is_written(steps: list[str], separator: str):
    spaced = f"  {separator.strip()} ".join(steps)
    path = tidy_path(spaced, separator)
    assert path == separator.join(steps)
    assert tidy_path(path, separator) == path
    assert above(path, separator) == separator.join(steps[:-1])


@given(st.text())
def test_a_text_without_tags_and_entities_stays(text: str):
    if "<" not in text and "&" not in text:
        assert without_markup(text) == text


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("<p>Knife&nbsp;&amp; fork<br/>steel</p>", "Knife & fork\nsteel"),
        ("<ul><li>red</li><li class='x'>blue</li></ul>", "red\nblue"),
        ("<b>un</b>broken", "unbroken"),
        ("<p>a</p><script>evil()</script><style>p{}</style>b", "a\nb"),
        ("if a < b and b > c", "if a < b and b > c"),
        ("write to <me@example.org>", "write to <me@example.org>"),
        ("R&amp;D", "R&D"),
        ("R&D", "R&D"),
        ("<p>never closed", "never closed"),
    ],
)
def test_the_words_of_a_cell_of_html(tmp_path: Path, cell: str, words: str):
    assert without_markup(cell) == words
    table = [{"text": cell, "label": "x"}, {"text": "other", "label": "y"}]
    assert read(table).train.texts[0] == words


def test_html_is_read_alike_in_fitting_and_predicting(tmp_path: Path):
    path = tmp_path / "new.csv"
    path.write_text("title,description\nKnife,<p>of <b>steel</b></p>\n")
    kept = Columns(("title", "description"), ("category",))

    def texts(kept: Columns | None) -> list[str]:
        found = Documents([str(path)], left_out=lambda place, why: None, kept=kept)
        return [x.text for x in found]

    assert texts(kept) == ["Knife\nof steel"]
    assert texts(None) == ["Knife\n<p>of <b>steel</b></p>"]  # a corpus is read as it is


def test_copies_of_a_row_do_not_hide_its_id(tmp_path: Path):
    path = tmp_path / "shop.csv"
    path.write_text("sku,text,category\n1,soap,Bath\n1,soap,Bath\n1,soap,Gifts\n2,spade,Garden\n")
    data, taken = read_records(path, Columns())
    assert taken is not None
    assert (taken.columns.id, data.train.ids) == ("sku", ["1", "2"])
    assert data.train.Y.sum() == 3
    path.write_text("sku,text,category\n1,soap,Bath\n1,towel,Bath\n2,spade,Garden\n")
    data, taken = read_records(path, Columns())
    assert taken is not None
    assert (taken.columns.id, len(data.train)) == (None, 3)
