"""Which columns are taken: by name, by contents, as asked, as before."""

from __future__ import annotations

import pytest

from depl.core.errors import ConfigError, CorpusError
from depl.readers.choosing import choose
from depl.readers.columns import Columns
from depl.readers.fields import LIST, MARKS, WrongFieldError, as_names
from depl.readers.tables import Table

PROSE = "a longer text about wine and oil and many other things"


def table(**columns: list[object]) -> Table:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return Table("CSV", list(columns), lambda: rows, lambda names: iter(()))


@pytest.mark.parametrize(
    ("header", "text", "labels", "id"),
    [
        ("id,text,labels", "text", "labels", "id"),
        ("Titel,Abstract,Schlagwörter", "Titel,Abstract", "Schlagwörter", None),
        ("Keywords,Year,Title,PPN", "Title", "Keywords", "PPN"),
        ("dc.identifier,dc.title,dc.subject", "dc.title", "dc.subject", "dc.identifier"),
        ("Titre,Résumé,Mots-clés", "Titre,Résumé", "Mots-clés", None),
        ("TÍTULO,RESUMEN,MATERIAS", "TÍTULO,RESUMEN", "MATERIAS", None),
        ("otsikko,tiivistelmä,asiasanat", "otsikko,tiivistelmä", "asiasanat", None),
        ("title_en,keyword1,text_en,keyword2", "title_en,text_en", "keyword1,keyword2", None),
    ],
)
def test_columns_by_their_names(header: str, text: str, labels: str, id: str | None):
    names = header.split(",")
    found = choose("t.csv", table(**{name: ["x 1", "y 2"] for name in names}), Columns())
    assert (",".join(found.text), ",".join(found.labels), found.id) == (text, labels, id)


def test_columns_by_their_contents():
    found = choose(
        "t.csv",
        table(
            year=[1999, 2000, 2001],
            a=["Wine; Oil", "Oil; Cheese", "Wine"],
            b=[PROSE + " 1", PROSE + " 2", PROSE + " 3"],
            c=["x1", "x2", "x3"],
        ),
        Columns(),
    )
    assert found == Columns(("b",), ("a",), None, ";")


def test_prose_without_a_name_joins_a_title():
    found = choose("t", table(title=["x"] * 2, annot=[PROSE] * 2, tags=["a"] * 2), Columns())
    assert found.text == ("title", "annot")


def test_an_id_that_repeats_is_none():
    columns = {"nr": ["1", "1"], "text": ["a", "b"], "labels": ["x", "y"]}
    assert choose("t", table(**columns), Columns()).id is None
    assert choose("t", table(**columns), Columns(id="NR")).id == "nr"


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["a; b", "c"], ";"),
        (["a | b", "c"], "|"),
        (["a\nb", "c"], "\n"),
        (["a, b", "c, d", "e"], ","),
        (["Wine, red; Oil, green", "Oil, green"], ";"),
        (['["a", "b"]', "[]"], LIST),
        (["['a', 'b']", "['c']"], LIST),
        ([["a", "b"], ["c"]], LIST),
        (["Wine", "Oil, green", "Zinc", "Tin", "Lead"], ""),
        ([17, 18], ""),
        ([17, [18, 19]], LIST),
        ([None, ""], ""),
    ],
)
def test_the_separator_of_labels(cells: list[object], separator: str):
    found = choose("t", table(text=["w"] * len(cells), labels=cells), Columns())
    assert found.separator == separator


@pytest.mark.parametrize("cells", [["0", "1"], [0, 1], [1.0, 0.0], [True, False], ["false", "1"]])
def test_columns_of_zeros_and_ones_are_labels_by_their_own_names(cells: list[object]):
    columns = table(text=[PROSE, PROSE + " 2"], wine=cells, oil=cells[::-1], year=[1999, 2000])
    for asked in (Columns(), Columns.asked(labels="wine,oil")):
        found = choose("t", columns, asked)
        assert (found.labels, found.separator) == (("wine", "oil"), MARKS)
        assert found.labels_said == "2 columns with 0 and 1: wine, oil"
    carried = [
        [n for c in ("wine", "oil") for n in as_names(r[c], c, MARKS)] for r in columns.sample()
    ]
    assert sorted(carried) == [["oil"], ["wine"]]


def test_what_is_neither_0_nor_1_is_no_mark():
    assert as_names(" ", "wine", MARKS) == as_names(float("nan"), "wine", MARKS) == []
    with pytest.raises(WrongFieldError, match="wine is '2'"):
        as_names("2", "wine", MARKS)
    # One column alone may have classes called 0 and 1.
    assert choose("t", table(text=[PROSE] * 2, labels=["0", "1"]), Columns()).separator == ""


def test_the_separator_is_kept_for_the_same_columns_only():
    kept = Columns(("text",), ("tags",), None, "|")
    new = table(text=[PROSE] * 2, tags=["a", "b"], topics=["a; b", "c"])
    assert choose("t", new, Columns(), kept=kept).separator == "|"
    assert choose("t", new, Columns.asked(labels="tags"), kept=kept).separator == "|"
    assert choose("t", new, Columns.asked(labels="topics"), kept=kept).separator == ";"


def test_what_is_asked_for_comes_before_what_is_found():
    columns = table(title=["t"], Text=["x"], b=["y"], tags=["u"], **{"c, d": ["z"]})
    asked = Columns.asked(text="b,text", labels="C, D", id="title", separator="tab", merge=False)
    assert choose("t", columns, asked) == Columns(("b", "Text"), ("c, d",), "title", "\t", False)


def test_what_was_taken_before_is_taken_where_it_is_there():
    kept = Columns(("Titel", "Abstract"), ("Schlagwörter",), "PPN", "|", merge=False)
    new = table(PPN=["1"], TITEL=["x"], text=["y"], tags=["a;b"])
    assert choose("t", new, Columns(), kept=kept, labelled=False) == Columns(
        ("TITEL", "text"), (), "PPN", "|", merge=False
    )  # the abstract has another name here
    assert choose("t", new, Columns(), kept=kept).labels == ("tags",)


def test_a_missing_column_is_said_with_the_nearest_and_all():
    columns = table(Titel=["x"], Jahr=["1"])
    with pytest.raises(CorpusError, match=r"no column 'Titl', which --text .* mean 'Titel'\? Its"):
        choose("t.csv", columns, Columns.asked(text="Titl"))
    with pytest.raises(CorpusError, match=r"'Autor', which --labels \(in Python: labels=\) asks"):
        choose("t.csv", columns, Columns.asked(labels="Autor"))
    with pytest.raises(CorpusError, match=r"Which column of t\.csv has the labels.* --labels NAME"):
        choose("t.csv", columns, Columns())
    with pytest.raises(CorpusError, match=r"has the text.* only column is 'n'; the first row must"):
        choose("t.csv", table(n=[1, 2]), Columns(), labelled=False)
    with pytest.raises(ConfigError, match="--text takes the name of a column"):
        Columns.asked(text=" ")


def test_what_was_the_id_before_is_no_text():
    kept = Columns(("Inhalt",), (), "Titel")
    new = table(Titel=["a", "b"], Abstract=[PROSE, PROSE])
    assert choose("t", new, Columns(), kept=kept, labelled=False).text == ("Abstract",)


def test_an_empty_id_numbers_the_rows():
    new = table(id=["a", "b"], text=[PROSE, PROSE])
    assert choose("t", new, Columns(), labelled=False).id == "id"
    assert choose("t", new, Columns(id=""), labelled=False).id is None


@pytest.mark.parametrize("there", [("Titel",), ("Abstract",)])
def test_half_of_the_text_of_a_run_is_completed_by_names_alone(there: tuple[str, ...]):
    kept = Columns(("Titel", "Abstract"), ("Thema",))
    columns = {there[0]: ["a b"] * 2, "Beschreibung": [PROSE] * 2, "Bemerkung": [PROSE] * 2}
    found = choose("t", table(**columns), Columns(), kept=kept, labelled=False)
    assert found.text == (*there, "Beschreibung")
    asked = choose("t", table(**columns), Columns(there), kept=kept, labelled=False)
    assert asked.text == there
    lone = choose("t", table(Titel=["a"], Bemerkung=[PROSE]), Columns(), kept=kept, labelled=False)
    assert lone.text == ("Titel",)
