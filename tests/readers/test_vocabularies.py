"""Vocabularies in SKOS and as tables, and the labels of records matched to their concepts."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path

import pytest
from rdflib import OWL, RDF, SKOS, Graph, Literal, Namespace, URIRef
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.readers import read
from depl.readers.vocabularies import read_vocabulary

EX = Namespace("http://example.org/")
XL = Namespace("http://www.w3.org/2008/05/skos-xl#")


def concept(graph: Graph, name: str, **texts: str) -> URIRef:
    """A concept; the keywords are languages and its names in them."""
    graph.add((EX[name], RDF.type, SKOS.Concept))
    for language, text in texts.items():
        graph.add((EX[name], SKOS.prefLabel, Literal(text, lang=language)))
    return EX[name]


@pytest.fixture
def graph() -> Graph:
    graph = Graph()
    food = concept(graph, "food", en="food", de="Lebensmittel")
    drink = concept(graph, "drink", en="drink", de="Getränk")
    wine = concept(graph, "wine", en="wine", de="Wein")
    graph.add((food, SKOS.narrower, drink))
    graph.add((wine, SKOS.broader, drink))
    graph.add((drink, SKOS.altLabel, Literal("beverage", lang="en")))
    graph.add((drink, SKOS.altLabel, Literal("Trank", lang="de-AT")))
    graph.add((wine, SKOS.scopeNote, Literal("Of grapes\n only.", lang="en")))
    graph.add((wine, SKOS.scopeNote, Literal("Nur aus Trauben.", lang="de")))
    return graph


GERMAN = [
    Label(EX + "drink", "Getränk", ("drink", "Trank", "beverage"), "", (EX + "food",)),
    Label(EX + "food", "Lebensmittel", ("food",)),
    Label(EX + "wine", "Wein", ("wine",), "Nur aus Trauben.", (EX + "drink",)),
]


@pytest.mark.parametrize(
    ("suffix", "syntax"),
    [(".ttl", "turtle"), (".rdf", "xml"), (".jsonld", "json-ld"), (".nt", "nt"), (".n3", "n3")],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_all_syntaxes_give_the_same_labels(
    graph: Graph, tmp_path: Path, suffix: str, syntax: str, compressed: bool
):
    raw = graph.serialize(format=syntax, encoding="utf-8")
    path = tmp_path / f"food{suffix}{'.gz' if compressed else ''}"
    path.write_bytes(gzip.compress(raw) if compressed else raw)
    assert read_vocabulary(path, "de").labels == [
        Label(x.id, x.name, x.alt_names, x.description, x.broader) for x in GERMAN
    ]


def written(graph: Graph, folder: Path, name: str = "food.ttl") -> Path:
    graph.serialize(folder / name)
    return folder / name


def test_names_are_in_the_language_asked_for(graph: Graph, tmp_path: Path):
    labels = {x.name: x for x in read_vocabulary(written(graph, tmp_path), "EN").labels}
    assert labels["drink"].alt_names == ("Getränk", "beverage", "Trank")
    assert labels["wine"].description == "Of grapes only."


def test_one_language_need_not_be_asked_for(tmp_path: Path):
    graph = Graph()
    concept(graph, "wine", de="Wein")
    concept(graph, "oil", de="Öl")
    concept(graph, "tea", de="Tee", en="tea")
    found = read_vocabulary(written(graph, tmp_path))
    assert [x.name for x in found.labels] == ["Öl", "Tee", "Wein"]
    assert "names in 'de'" in found.described


def test_a_concept_without_a_name_in_the_language_keeps_another(graph: Graph, tmp_path: Path):
    concept(graph, "tea", fr="thé", en="tea")
    concept(graph, "x/nameless")
    found = read_vocabulary(written(graph, tmp_path), "de")
    names = {x.id: x.name for x in found.labels}
    assert names[EX + "tea"] == "tea"
    assert names[EX + "x/nameless"] == "nameless"
    assert "1 named in another language" in found.described
    assert "1 without a name" in found.described


def test_notations_are_ids_only_where_each_concept_has_one_of_its_own(graph: Graph, tmp_path: Path):
    for name, notation in (("food", "1"), ("drink", "1.1"), ("wine", "1.1.1")):
        graph.add((EX[name], SKOS.notation, Literal(notation)))
    found = read_vocabulary(written(graph, tmp_path), "de")
    assert [(x.id, x.broader) for x in found.labels] == [
        ("1", ()),
        ("1.1", ("1",)),
        ("1.1.1", ("1.1",)),
    ]
    assert "ids are notations" in found.described
    graph.add((concept(graph, "oil", de="Öl"), SKOS.notation, Literal("1.1")))
    found = read_vocabulary(written(graph, tmp_path), "de")
    assert {x.id for x in found.labels} == {EX + x for x in ("food", "drink", "wine", "oil")}
    assert "ids are URIs" in found.described


def test_names_may_be_given_in_skos_xl(tmp_path: Path):
    graph = Graph()
    graph.add((EX.wine, RDF.type, SKOS.Concept))
    graph.add((EX.wine, XL.prefLabel, EX.name))
    graph.add((EX.name, XL.literalForm, Literal("wine", lang="en")))
    assert read_vocabulary(written(graph, tmp_path)).labels == [Label(EX + "wine", "wine")]


def test_concepts_out_of_use_are_no_labels(graph: Graph, tmp_path: Path):
    graph.add((EX.drink, OWL.deprecated, Literal(True)))
    labels = read_vocabulary(written(graph, tmp_path), "de").labels
    assert [(x.name, x.broader) for x in labels] == [("Lebensmittel", ()), ("Wein", ())]


def test_a_table_of_labels_is_a_vocabulary(tmp_path: Path):
    path = tmp_path / "labels.csv"
    path.write_text("id,name,alt_names,broader\n1,drink,,\n2,wine,vin;Wein,1\n")
    assert read_vocabulary(path).labels == [
        Label("1", "drink"),
        Label("2", "wine", ("vin", "Wein"), "", ("1",)),
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("v.ttl", "this is no Turtle", "cannot be read as Turtle"),
        ("v.rdf", "<a><b></a>", "cannot be read as RDF/XML"),
        ("v.jsonld", "{", "cannot be read as JSON-LD"),
        ("v.nt", "<a> <b>", "cannot be read as N-Triples"),
        ("v.ttl", "<http://a> <http://b> <http://c> .", "none says that something is a skos:Con"),
        ("v.ttl.gz", "not compressed", "cannot be read"),
        ("v.pdf", "", "no vocabulary that depl reads"),
        ("v.csv", "a,b\n1,2\n", "Call them id and name in the first row"),
        ("v.csv", "id,name\n", "cannot be read as a table of labels:\nit holds none"),
        ("v.jsonld", '{"@context": "https://example.org/c"}', "depl fetches nothing"),
    ],
)
def test_what_is_no_vocabulary_is_refused_in_one_sentence(
    tmp_path: Path, name: str, content: str, said: str
):
    (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError, match=said):
        read_vocabulary(tmp_path / name)


def test_missing_files_and_languages_are_named(graph: Graph, tmp_path: Path):
    with pytest.raises(CorpusError, match=r"none\.ttl is missing"):
        read_vocabulary(tmp_path / "none.ttl")
    path = written(graph, tmp_path)
    with pytest.raises(CorpusError, match=r"in the language 'fr'.*de \(3\), en \(3\)"):
        read_vocabulary(path, "fr")
    with pytest.raises(CorpusError, match=r"several languages: .*--language"):
        read_vocabulary(path)


ROWS = [
    {"title": "Sparkling", "subjects": ["WEIN", "Reisen"]},
    {"title": "Juice", "subjects": ["Beverage", "http://example.org/wine"]},
    {"title": "Trains", "subjects": ["reisen"]},
]


def test_labels_are_found_by_uri_name_and_other_name(
    graph: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING, "depl.readers"):
        data = read(ROWS, vocabulary=written(graph, tmp_path), language="de")
    assert list(data.labels) == [*GERMAN, Label("Reisen", "Reisen")]
    drink, _, wine, travel = range(4)
    carried = [sorted(data.train.Y[[i]].indices.tolist()) for i in range(3)]
    assert carried == [[wine, travel], [drink, wine], [travel]]
    assert "1 label of the documents is no concept of food.ttl" in caplog.text
    assert "'Reisen' (in 2)" in caplog.text


def test_ids_of_a_corpus_are_found_by_what_its_labels_file_calls_them(graph: Graph, tmp_path: Path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    row = {"text": "Sparkling", "labels": ["17", "18"]}
    (folder / "train.jsonl").write_text(json.dumps(row))
    (folder / "labels.jsonl").write_text(
        '{"id": "17", "name": "Wein"}\n{"id": "18", "name": "Reise", "alt_names": ["Fahrt"]}\n'
    )
    data = read(folder, vocabulary=written(graph, tmp_path), language="de")
    own = [data.labels[i] for i in data.train.Y.indices]
    assert own == [GERMAN[2], Label("18", "Reise", ("Fahrt",))]


def test_a_name_of_two_concepts_means_the_first_and_this_is_said(
    graph: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    concept(graph, "wine-2", de="Wein")
    with caplog.at_level(logging.WARNING, "depl.readers"):
        data = read(ROWS[:1], vocabulary=written(graph, tmp_path), language="de")
    assert EX + "wine" in [data.labels[i].id for i in data.train.Y.indices]
    assert "1 label is the name of several concepts" in caplog.text


def test_broader_concepts_in_a_circle_are_refused_or_cut(
    graph: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    graph.add((EX.food, SKOS.broader, EX.wine))
    path = written(graph, tmp_path)
    with pytest.raises(CorpusError, match="broader labels that lead in a circle: 1 found"):
        read(ROWS, vocabulary=path, language="de")
    data = read(ROWS, vocabulary=path, language="de", on_error="skip")
    assert sum(len(x.broader) for x in data.labels) == 2
    assert "lead in a circle" in caplog.text


def test_the_command_line_says_what_was_matched(graph: Graph, tmp_path: Path):
    rows = [f"{row['title']};{'|'.join(row['subjects'])}" for row in ROWS]
    table = tmp_path / "records.csv"
    table.write_text("\n".join(["title;subjects", *rows]))
    path = written(graph, tmp_path)
    done = CliRunner().invoke(
        app, ["info", str(table), "--vocabulary", str(path), "--language", "de", "--json"]
    )
    assert done.exit_code == 0
    said = " ".join(done.stderr.split())
    assert "food.ttl: Turtle, 3 concepts, names in 'de', ids are URIs" in said
    assert "3 of 4 labels of the documents are concepts" in said
    assert "(1 by id, 1 by name, 1 by another name)" in said
    assert json.loads(done.stdout)["labels"] == 4
