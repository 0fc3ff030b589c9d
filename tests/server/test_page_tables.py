"""Tables on the page: another sheet, other columns, and tables of which nothing shows the text."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the service needs depl[serve]")
pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

import xlsxwriter
from playwright.sync_api import Page, expect

from depl.pipeline.fit import fit
from depl.readers import read
from depl.server.security import Access

Opener = Callable[..., Page]

WINE = "Customs duty on sparkling wine from third countries, made of grapes from steep vineyards"
FISH = "Catch quotas for cod and herring of fishing vessels in the North Sea"
MILK = "Skimmed milk powder and butter of dairies"
SHEETS = {
    "Acts": [["Nr", "Title", "Remarks"], ["007", WINE, "see also"], ["008", MILK, "new"]],
    "Drafts": [
        ["Key", "Title", "Body of it"],
        ["01", "One", FISH],
        ["02", "Two", MILK],
        ["03", "Three", WINE],
    ],
}


@pytest.fixture(scope="module")
def address(serving: Callable, fitted_run: Path) -> Iterator[str]:
    with serving(fitted_run, Access()) as url:
        yield url


@pytest.fixture
def page(visit: Opener, address: str) -> Page:
    return visit(address)


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    path = tmp_path / "acts.xlsx"
    book = xlsxwriter.Workbook(path)
    for name, rows in SHEETS.items():
        sheet = book.add_worksheet(name)
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                sheet.write_string(i, j, cell)
    book.close()
    return path


def open_table(page: Page, path: Path, documents: int) -> None:
    page.set_input_files("#files", [path])
    expect(page.locator("#documents-state")).to_contain_text(f"for all {documents} documents")


def names(page: Page) -> list[str]:
    return page.locator("#documents-list .document-name").all_inner_texts()


def choose(page: Page) -> None:
    page.get_by_role("button", name="Choose sheet and columns of acts.xlsx").click()
    expect(page.get_by_role("dialog", name="How to read acts.xlsx")).to_be_visible()


def test_another_sheet_and_other_columns_are_chosen_and_taken_back(
    page: Page, workbook: Path
) -> None:
    open_table(page, workbook, 2)
    told = page.locator("#documents-tables")
    expect(told).to_contain_text("acts.xlsx, sheet 'Acts': text from Title; named by Nr")
    choose(page)
    expect(page.get_by_role("combobox", name="Sheet")).to_have_value("Acts")
    expect(page.get_by_role("checkbox", name="Title")).to_be_checked()
    page.get_by_role("combobox", name="Sheet").select_option("Drafts")
    body = page.get_by_role("checkbox", name=re.compile("^Body of it Catch quotas"))
    expect(body).to_be_visible()
    ticked = page.locator("#choose-text input:checked")
    while ticked.count():
        ticked.first.uncheck()
    page.get_by_role("button", name="Read the table").click()
    expect(page.locator("#choose-wrong")).to_have_text("Tick at least one column.")
    body.check()
    page.get_by_label("Name of a document").select_option("Key")
    page.get_by_role("button", name="Read the table").click()
    expect(page.locator("#documents-state")).to_contain_text("for all 3 documents")
    assert names(page) == ["01", "02", "03"]
    expect(page.get_by_role("list", name="Labels of 03")).to_contain_text("wine")
    expect(told).to_contain_text("sheet 'Drafts': text from Body of it; named by Key")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download all as CSV").click()
    raw = Path(saved.value.path()).read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")  # or Excel takes it for another encoding
    found = list(csv.DictReader(raw.decode("utf-8-sig").splitlines()))
    assert {x["document"] for x in found} == {"01", "02", "03"}
    page.locator("#toast").get_by_role("button", name="Undo").click()
    assert names(page) == ["007", "008"]


def test_what_was_chosen_is_what_the_next_choice_begins_with(page: Page, workbook: Path) -> None:
    open_table(page, workbook, 2)
    choose(page)
    page.get_by_role("checkbox", name=re.compile("^Remarks")).check()
    page.get_by_label("Name of a document").select_option("the number of the row")
    page.get_by_role("button", name="Read the table").click()
    expect(page.locator("#documents-tables")).to_contain_text(
        "text from Title + Remarks; named by the number of the row"
    )
    choose(page)
    expect(page.get_by_role("checkbox", name=re.compile("^Remarks"))).to_be_checked()
    expect(page.get_by_label("Name of a document")).to_have_value("")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert names(page) == ["2", "3"]


def test_a_table_that_does_not_show_its_text_asks_for_it(
    visit: Opener, address: str, tmp_path: Path
) -> None:
    page = visit(address, expected=("422",))
    path = tmp_path / "bare.csv"
    path.write_text("foo,bar\nwine,vineyard\nherring,cod\n")
    page.set_input_files("#files", [path])
    dialog = page.get_by_role("dialog", name="How to read bare.csv")
    expect(dialog).to_contain_text("Nothing shows which column has the text. Choose it:")
    expect(page.get_by_role("combobox", name="Sheet")).to_be_hidden()
    dialog.get_by_role("checkbox", name="foo").check()
    dialog.get_by_role("checkbox", name="bar").check()
    dialog.get_by_role("button", name="Read the table").click()
    expect(page.locator("#documents-state")).to_contain_text("for all 2 documents")
    expect(page.locator("#documents-list > li").first).to_contain_text("wine vineyard")


def test_an_opened_file_joins_what_is_chosen_for_another(
    page: Page, workbook: Path, tmp_path: Path
) -> None:
    other = tmp_path / "more.csv"
    other.write_text(f"id,text\nx,{MILK} again\ny,{FISH} again\n")
    open_table(page, workbook, 2)
    open_table(page, other, 4)
    choose(page)
    page.get_by_role("combobox", name="Sheet").select_option("Drafts")
    expect(page.get_by_role("checkbox", name=re.compile("^Body"))).to_be_visible()
    page.get_by_label("Name of a document").select_option("Key")
    page.get_by_role("button", name="Read the table").click()
    expect(page.locator("#documents-title")).to_have_text("5 documents")
    assert names(page) == ["01", "02", "03", "x", "y"]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_serious_in_the_choice(
    visit: Opener, address: str, workbook: Path, width: int, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    open_table(page, workbook, 2)
    for look in (lambda: None, lambda: choose(page)):
        look()
        page.wait_for_timeout(300)
        found = axe.run(page).response["violations"]
        assert [x["id"] for x in found if x["impact"] in ("serious", "critical")] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_numbers_of_keywords_are_for_the_expert_view(page: Page, address: str) -> None:
    page.goto(f"{address}#label/2560")
    card = page.locator("#label-card")
    expect(card.get_by_role("heading", name="Keywords how much each word speaks")).to_be_visible()
    number = card.locator(".weights .number").first
    expect(number).to_be_hidden()
    page.get_by_role("button", name="Expert view").click()
    expect(number).to_be_visible()
    expect(card).to_contain_text("its weight in the SVM")


def test_codes_are_shown_beside_names_where_people_know_them(
    visit: Opener, serving: Callable, tmp_path: Path
) -> None:
    goods = {"0101.21": "Breeding horses", "0402.10": "Milk powder", "2204.21": "Bottled wine"}
    lines = [f"{code},{name}" for code, name in goods.items()]
    (tmp_path / "codes.csv").write_text("\n".join(["Code,Name", *lines]))
    rows = [{"text": f"{x} lot {i}", "code": c} for c, x in goods.items() for i in range(12)]
    run = fit(read(rows, vocabulary=tmp_path / "codes.csv").train, tmp_path / "run").path
    with serving(run, Access(local_writes=True)) as url:
        page = visit(url)
        page.get_by_label("Document", exact=True).fill("Milk powder for babies")
        code = page.locator("#list .name .code").first
        expect(code).to_have_text("0402.10")
        expect(code).to_be_visible()
        page.get_by_role("combobox", name="Add a label").fill("0101")
        expect(page.get_by_role("option")).to_contain_text("Breeding horses 0101.21")
        page.goto(f"{url}#labels")
        page.get_by_role("searchbox", name="Search").fill("2204")
        expect(page.locator("#rows > li")).to_have_count(1)
        expect(page.locator("#rows li .row-head")).to_contain_text("Bottled wine 2204.21")


def test_ids_that_nobody_knows_are_not_shown(page: Page) -> None:
    page.get_by_label("Document", exact=True).fill(WINE)
    expect(page.locator("#list .name").first).to_contain_text("wine")
    expect(page.locator("#list .code")).to_have_count(0)
