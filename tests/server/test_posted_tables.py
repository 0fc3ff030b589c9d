"""Tables sent to the service: what there is to choose from, what was chosen; paths as a tree."""

from __future__ import annotations

from pathlib import Path

import pytest
import xlsxwriter

from depl.pipeline.fit import fit
from depl.readers import read

SHEETS = {
    "Cover": [["Extract of 2024"]],
    "Books": [
        ["Nr", "Title", "Abstract"],
        ["007", "Wine", "Of grapes"],
        ["008", "Milk", "Of cows"],
    ],
    "Journals": [["ISSN", "Name", "Kind of thing"], ["0001-X", "Herring", "fish and nets"]],
    "Empty": [],
}


@pytest.fixture
def workbook(tmp_path: Path) -> bytes:
    book = xlsxwriter.Workbook(tmp_path / "library.xlsx")
    for name, rows in SHEETS.items():
        sheet = book.add_worksheet(name)
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                sheet.write_string(i, j, cell)
    book.close()
    return (tmp_path / "library.xlsx").read_bytes()


def post(client, path: str, raw: bytes, **params: object):
    return client.post(f"/v1/{path}", params={"name": "library.xlsx", **params}, content=raw)


def test_sheets_and_columns_to_choose_from(client, workbook: bytes):
    found = post(client, "table/columns", workbook).json()
    assert found["sheets"] == ["Cover", "Books", "Journals"]
    assert (found["sheet"], found["text"], found["id"]) == ("Books", ["Title", "Abstract"], "Nr")
    assert found["columns"] == [
        {"name": "Nr", "example": "007"},
        {"name": "Title", "example": "Wine"},
        {"name": "Abstract", "example": "Of grapes"},
    ]
    other = post(client, "table/columns", workbook, sheet="Journals").json()
    assert (other["sheet"], [x["name"] for x in other["columns"]]) == (
        "Journals",
        SHEETS["Journals"][0],
    )


def test_what_was_chosen_is_read(client, workbook: bytes):
    chosen = {"sheet": "Journals", "text": ["Name", "Kind of thing"], "id": "ISSN"}
    found = post(client, "table", workbook, **chosen).json()
    assert [(x["id"], x["text"]) for x in found["documents"]] == [
        ("0001-X", "Herring\nfish and nets")
    ]
    assert (found["text"], found["id"]) == (chosen["text"], "ISSN")
    together = post(client, "table", workbook, sheet="Books", text="Abstract,Title", id="").json()
    assert [x["text"] for x in together["documents"]] == ["Of grapes\nWine", "Of cows\nMilk"]
    assert (together["id"], {x["numbered"] for x in together["documents"]}) == (None, {True})


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"sheet": "Jornals"}, "has no sheet 'Jornals'. Its sheets are: Cover, Books, Journals"),
        ({"sheet": "Books", "text": "Titel"}, "Did you mean 'Title'?"),
        ({"sheet": "Books", "id": "PPN"}, "has no column 'PPN'"),
        ({"sheet": "Cover"}, "Which column of library.xlsx"),
    ],
)
def test_a_choice_that_is_not_there_is_refused(client, workbook: bytes, params, said: str):
    answer = post(client, "table", workbook, **params)
    assert answer.status_code == 422
    assert said in answer.json()["error"]["message"] or "There is no record" in answer.text


def test_columns_of_which_none_tells_that_it_is_the_text(client):
    found = client.post("/v1/table/columns?name=x.csv", content=b"a,b\nmare,1\n").json()
    assert (found["text"], found["id"]) == ([], None)
    assert [x["name"] for x in found["columns"]] == ["a", "b"]


@pytest.mark.parametrize("name", ["x.txt", "x.pdf", "x"])
def test_files_without_columns_have_none(client, name: str):
    found = client.post(f"/v1/table/columns?name={name}", content=b"wine\nand cheese").json()
    assert (found["columns"], found["sheets"]) == ([], [])


def test_a_file_that_cannot_be_opened_is_refused_without_its_folder(client):
    answer = client.post("/v1/table/columns?name=x.xlsx", content=b"PK nothing")
    assert answer.status_code == 422
    message = answer.json()["error"]["message"]
    assert message.startswith("x.xlsx cannot be read")
    assert "/tmp" not in message


PATHS = {
    "Home > Kitchen > Knives": "a sharp knife of steel",
    "Home > Kitchen > Pans": "a frying pan of iron",
    "Home > Bath": "a towel of cotton",
    "Home > Bath > Soap": "soap made from olive oil",
    "Garden > Tools": "a spade and a rake",
    "Garden > Plants": "roses and tulips",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [
        {"sku": f"{i}-{j}", "text": f"{text} number {j}", "category": path}
        for i, (path, text) in enumerate(PATHS.items())
        for j in range(4)
    ]
    data = read(rows)
    columns = {
        "text": ["text"],
        "labels": ["category"],
        "id": "sku",
        "separator": "",
        "path": " > ",
    }
    folder = tmp_path_factory.mktemp("shop") / "run"
    fit(data.train, folder, columns={**columns, "merge": True})
    return folder


def test_paths_are_a_tree_with_all_that_is_above_them(connect, shop: Path):
    from depl.model.classifier import Classifier

    client = connect(Classifier.load(shop))

    def level(under: str = "") -> tuple[list[tuple[str, int, bool]], str]:
        found = client.get("/v1/hierarchy", params={"under": under}).json()
        return [(x["short"], x["narrower"], x["known"]) for x in found["labels"]], found["above"]

    assert level() == ([("Garden", 2, False), ("Home", 2, False)], "")
    assert level("Home") == ([("Bath", 1, True), ("Kitchen", 2, False)], "")
    assert level("Home > Kitchen") == ([("Knives", 0, True), ("Pans", 0, True)], "Home")
    assert level("Home > Bath") == ([("Soap", 0, True)], "Home")
    assert level("Home > Bath > Soap") == ([], "Home > Bath")
    assert client.get("/v1/hierarchy?under=Cellar").status_code == 404
    label = client.get("/v1/labels/Home > Kitchen > Pans").json()
    assert label["broader"] == [{"id": "Home > Kitchen", "name": "Home > Kitchen"}]


CODES = {"0101.21": "Breeding horses", "0402.10": "Milk powder", "2204.21": "Bottled wine"}


@pytest.fixture(scope="module")
def customs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose labels have codes and names."""
    folder = tmp_path_factory.mktemp("customs")
    lines = [f"{code},{name}" for code, name in CODES.items()]
    (folder / "codes.csv").write_text("\n".join(["Code,Bezeichnung", *lines]))
    rows = [{"text": f"{name} lot {i}", "code": x} for x, name in CODES.items() for i in range(9)]
    data = read(rows, vocabulary=folder / "codes.csv")
    return fit(data.train, folder / "run").path


@pytest.mark.parametrize(
    ("search", "found"),
    [("0402", ["0402.10"]), ("0402.1", ["0402.10"]), ("040210", ["0402.10"]), ("2", ["2204.21"])],
)
def test_codes_are_found_by_how_they_begin(connect, customs: Path, search: str, found: list[str]):
    from depl.model.classifier import Classifier

    model = Classifier.load(customs)
    client = connect(model)
    labels = client.get("/v1/labels", params={"search": search}).json()["labels"]
    assert [x["id"] for x in labels] == found
    assert client.get("/v1/info").json()["codes"] is True
    assert model.labels[model.find("10121")].id == "0101.21"


def test_ids_that_nobody_knows_are_no_codes(client):
    assert client.get("/v1/info").json()["codes"] is False
