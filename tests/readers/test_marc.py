"""MARC records in and out, written and read again by pymarc itself."""

from __future__ import annotations

import copy
import csv
import io
import sys
from pathlib import Path

import pytest

pymarc = pytest.importorskip("pymarc", reason="MARC needs depl[marc]")

from pymarc import Field, Indicators, Record, Subfield  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from depl.cli.app import app  # noqa: E402
from depl.core.corpus import Label  # noqa: E402
from depl.core.errors import ConfigError, CorpusError, MissingExtraError  # noqa: E402
from depl.readers.columns import Columns  # noqa: E402
from depl.readers.corpora import read_records  # noqa: E402
from depl.readers.documents import Documents  # noqa: E402
from depl.readers.marc import MarcFields  # noqa: E402


def field(tag: str, *subfields: str, second: str = " ") -> Field:
    parts = [Subfield(part[0], part[1:]) for part in subfields]
    return Field(tag, Indicators(" ", second), parts)


def record(number: int, title: str, *fields: Field) -> Record:
    made = Record()
    made.add_field(Field("001", data=f"r{number}"))
    made.add_field(field("245", f"a{title} :", "ba subtitle /", "cby nobody"))
    made.add_field(*fields or [field("020", "a123")])
    return made


RECORDS = [
    record(
        1,
        "Sparkling wine",
        field("505", "tFirst part", "rAnn Author", "uhttp://x"),
        field("520", "aRules on white grapes über alles."),
        field("650", "aWine.", "0(DE-588)1", "2gnd", second="7"),
        field("650", "aGrapes", second="0"),
        field("651", "aBordeaux", second="7"),
        field("700", "aWine, Walter"),
    ),
    record(2, "Virgin olive oil", field("653", "a=oil", second=" ")),
]


def as_file(path: Path, records: list[Record]) -> Path:
    with path.open("wb") as file:
        writer = (pymarc.XMLWriter if path.suffix != ".mrc" else pymarc.MARCWriter)(file)
        for one in records:
            one = copy.deepcopy(one)
            one.leader.coding_scheme = "a"
            writer.write(one)
        writer.close(close_fh=False)
    return path


def from_file(path: Path) -> list[Record]:
    if path.suffix != ".mrc":
        return pymarc.parse_xml_to_array(io.BytesIO(path.read_bytes()))
    return list(pymarc.MARCReader(path.read_bytes()))


def read(path: Path, **options):
    left_out: list[tuple[str, str]] = []
    found = Documents([str(path)], left_out=lambda *told: left_out.append(told), **options)
    return list(found), left_out


@pytest.mark.parametrize("name", ["r.mrc", "r.marcxml", "r.xml", "binary"])
def test_text_and_subjects_of_records(tmp_path: Path, name: str):
    path = as_file(tmp_path / ("r.mrc" if name == "binary" else name), RECORDS)
    path = path.rename(tmp_path / name)
    (first, second), left_out = read(path)
    assert left_out == []
    assert first.id == "r1"
    assert first.text.split("\n") == [
        "Sparkling wine a subtitle",
        "Rules on white grapes über alles.",
        "First part Ann Author",
    ]
    assert first.labels == ["Wine", "Grapes", "Bordeaux"]
    assert (second.id, second.labels) == ("r2", ["=oil"])


def test_fields_can_be_chosen(tmp_path: Path):
    path = as_file(tmp_path / "r.mrc", RECORDS)
    columns = Columns(("245c,520",), ("650$a=gnd",))
    fields = MarcFields.chosen(columns)
    (first, second), _ = read(path, columns=columns)
    assert first.text == "by nobody\nRules on white grapes über alles."
    assert first.labels == ["Wine"]
    assert second.labels == []
    assert fields.subjects_of(RECORDS[0]) == [("Wine", "(DE-588)1")]
    assert MarcFields.asked(subjects="650=lcsh").subjects_of(RECORDS[0]) == [("Grapes", "")]
    with pytest.raises(ConfigError, match=r"--text takes MARC fields.*'title'"):
        read(path, columns=Columns(("title",)))
    # What the run was made from is taken, unless that was a table.
    assert read(path, kept=Columns(("245$c",), ("650$a=gnd",), "001"))[0][0].text == "by nobody"
    assert read(path, kept=Columns(("Titel",)))[0][0].text.startswith("Sparkling wine a subtitle")


def test_new_subjects_have_source_and_id_and_no_duplicate_is_added():
    labels = [Label("(DE-588)1", "Vin"), Label("x", "WINE"), Label("(DE-588)7", "Honey")]
    labels += [Label("bees", "bees")]
    for subjects, second, expected in (
        ("650=gnd", "7", ["$aHoney$0(DE-588)7$2gnd", "$abees$2gnd"]),
        ("650=mesh", "2", ["$aHoney$0(DE-588)7", "$abees"]),
        (None, "4", ["$aHoney$0(DE-588)7", "$abees"]),
    ):
        made = copy.deepcopy(RECORDS[0])
        MarcFields.asked(subjects=subjects).add(made, labels)
        before = [str(x) for x in RECORDS[0].get_fields()]
        new = [x for x in made.get_fields() if str(x) not in before]
        assert [str(x)[6:] for x in new] == [f"\\{second}{text}" for text in expected]
        assert {x.tag for x in new} == {"650"}
        assert [str(x) for x in made.get_fields() if str(x) in before] == before


def test_records_that_cannot_be_read_cost_no_other(tmp_path: Path):
    path = as_file(tmp_path / "r.mrc", RECORDS)
    raw = path.read_bytes()
    cut = int(raw[:5])
    path.write_bytes(raw[:cut] + b"00030" + b"x" * 24 + b"\x1d" + raw[cut:])
    documents, left_out = read(path)
    assert [d.id for d in documents] == ["r1", "r2"]
    assert [place for place, _ in left_out] == [f"{path}:2"]
    assert left_out[0][1].startswith("not a MARC record")
    xml = as_file(tmp_path / "r.marcxml", RECORDS)
    xml.write_bytes(xml.read_bytes()[:-60])
    documents, left_out = read(xml)
    assert documents[0].id == "r1"
    assert "broken XML in line" in left_out[0][1]


def test_without_the_extra_the_message_says_what_to_install(tmp_path: Path, monkeypatch):
    path = as_file(tmp_path / "r.mrc", RECORDS)
    monkeypatch.setitem(sys.modules, "pymarc", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'depl\[marc\]'"):
        read(path)


@pytest.mark.parametrize("suffix", [".mrc", ".marcxml"])
def test_predict_adds_subjects_and_keeps_the_records(fitted_run, tmp_path: Path, suffix: str):
    blank = Record()
    blank.add_field(Field("001", data="blank"), field("500", "aNote"))
    records = [*RECORDS, blank]
    source = as_file(tmp_path / f"in{suffix}", records)
    out = tmp_path / f"out{suffix}"
    command = ["predict", str(fitted_run), str(source), "--format", "marc", "-k", "1"]
    command += ["--labels", "650=eurovoc,651,653", "--output", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    written = from_file(out)
    assert [x["001"].data for x in written] == ["r1", "r2", "blank"]
    for before, after in zip(records, written, strict=True):
        kept = [str(x) for x in before.get_fields()]
        assert [str(x) for x in after.get_fields() if str(x) in kept] == kept
    added = [[str(x) for x in one.get_fields("650") if x.indicator2 == "7"] for one in written]
    assert added[0] == ["=650  \\7$aWine.$0(DE-588)1$2gnd"]  # it has that subject
    assert added[1] == ["=650  \\7$aolive oil$02077$2eurovoc"]
    assert added[2] == []


def test_records_are_a_corpus(tmp_path: Path):
    more = [
        field("650", "awine"),
        field("650", "aVin", "0(DE-588)1"),
        field("650", "aGRAPES", "02"),
    ]
    others = [record(3, "Red wine", *more), record(4, "No subject")]
    path = as_file(tmp_path / "r.mrc", [*RECORDS, *others])
    data, taken = read_records(path, Columns())
    assert data.train.ids == ["r1", "r2", "r3"]
    assert data.train.texts[0].startswith("Sparkling wine a subtitle\nRules on")
    assert data.labels.ids == ["(DE-588)1", "2", "Bordeaux", "=oil"]
    assert (data.labels[0].name, data.labels[0].alt_names) == ("Wine", ("Vin",))
    assert [row.indices.tolist() for row in data.train.Y] == [[0, 1, 2], [3], [0, 1]]
    assert taken is not None
    assert taken.described == "MARC records"
    assert taken.left_out == {"no labels": 1}
    again = Columns.from_json(taken.columns.to_json())
    assert read_records(path, Columns(), kept=again)[0].train.texts == data.train.texts
    known = read_records(path, Columns(), known=data.labels)[0]
    assert set(known.labels.ids) == set(data.labels.ids)


def test_fields_of_a_corpus_can_be_chosen(tmp_path: Path):
    path = as_file(tmp_path / "r.marcxml", RECORDS)
    data, taken = read_records(path, Columns.asked("245a", "650=gnd"))
    assert (data.train.texts, data.labels.names) == (["Sparkling wine"], ["Wine"])
    assert taken is not None
    assert (taken.columns.text, taken.columns.labels) == (("245$a",), ("650$a=gnd",))
    with pytest.raises(ConfigError, match="one source"):
        read_records(path, Columns.asked(None, "650=gnd,651=lcsh"))
    with pytest.raises(ConfigError, match="field 001"):
        read_records(path, Columns.asked(id="035"))


def test_the_vocabulary_of_all_subjects_is_kept_for_new_ones(tmp_path: Path):
    wine = field("650", "aWine", "0(DE-588)1", "2gnd", second="7")
    oil = field("650", "aOil", "0(DE-588)2", "2gnd", second="7")
    alike = [record(1, "Sparkling wine", wine), record(2, "Olive oil", oil)]
    _, taken = read_records(as_file(tmp_path / "r.mrc", alike), Columns())
    assert taken is not None
    assert taken.columns.labels == ("650$a=gnd", "651$a=gnd", "653$a=gnd")
    new = record(3, "Red wine")
    MarcFields.chosen(Columns(), taken.columns).add(new, [Label("(DE-588)1", "Wine")])
    assert [str(x) for x in new.get_fields("650")] == ["=650  \\7$aWine$0(DE-588)1$2gnd"]
    # One subject without a code, or of another vocabulary, and there is none to keep.
    for other in (field("653", "aoil"), field("650", "aOil", second="0")):
        path = as_file(tmp_path / "r.mrc", [*alike, record(3, "Oil", other)])
        _, taken = read_records(path, Columns())
        assert taken is not None
        assert taken.columns.labels == ("650$a", "651$a", "653$a")


def test_a_file_that_begins_with_no_record_is_no_marc_file(tmp_path: Path):
    path = as_file(tmp_path / "r.mrc", RECORDS)
    raw = path.read_bytes()
    path.write_bytes(raw[:100])
    with pytest.raises(CorpusError, match=r"cannot be read to their end(.|\n)*not a MARC record"):
        read_records(path, Columns())
    path.write_bytes(raw + raw[:100])
    with pytest.raises(CorpusError, match=r"records that are no MARC records: 1 found"):
        read_records(path, Columns())


def test_a_wide_table_of_records_shows_what_they_are(fitted_run, tmp_path: Path):
    source, out = as_file(tmp_path / "r.mrc", RECORDS), tmp_path / "out.csv"
    command = ["predict", str(fitted_run), str(source), "-k", "1", "--wide", "--output", str(out)]
    assert CliRunner().invoke(app, command).exit_code == 0
    header, first, _ = csv.reader(io.StringIO(out.read_text()))
    assert header[:3] == ["id", "text", "label_1"]
    assert first[:2] == ["r1", "Sparkling wine a subtitle"]


def test_marc_is_written_for_marc_only(fitted_run, tmp_path: Path):
    (tmp_path / "t.jsonl").write_text('{"text": "wine"}\n')
    command = ["predict", str(fitted_run), str(tmp_path / "t.jsonl")]
    done = CliRunner().invoke(app, [*command, "--output", str(tmp_path / "out.mrc")])
    assert isinstance(done.exception, ConfigError)
    assert "give a .mrc or MARCXML file" in str(done.exception)
