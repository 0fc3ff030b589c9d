"""A day's work on the page: tables, the review, the tree; and that everybody can do it."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the service needs depl[serve]")
pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from playwright.sync_api import Page, expect

from depl.core.corpus import Label
from depl.labels.feedback import FeedbackStore
from depl.labels.review_queue import NewDocument, ReviewQueue
from depl.model.classifier import Classifier
from depl.server.security import Access
from depl.server.tokens import Role, Token

Opener = Callable[..., Page]

WINE = "Customs duty on sparkling wine from third countries, made of grapes from steep vineyards"
ROWS = (
    ("w-1", WINE),
    ("f-2", "Catch quotas for cod and herring of fishing vessels in the North Sea"),
    ("m-3", "Skimmed milk powder and butter of dairies"),
)
TRAMS = (
    Label("tram", "tramway", broader=("4523",)),
    Label("driver", "tram driver", broader=("tram",)),
)


@pytest.fixture(scope="module")
def run(fitted_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose labels have a hierarchy: rail transport > tramway > tram driver."""
    own = Path(shutil.copytree(fitted_run, tmp_path_factory.mktemp("work") / "laws"))
    Classifier.load(own).add_labels(TRAMS)
    return own


@pytest.fixture(scope="module")
def address(serving: Callable, run: Path) -> Iterator[str]:
    """A service at which everybody on this machine may work."""
    with serving(run, Access(local_writes=True)) as url:
        yield url


@pytest.fixture
def page(visit: Opener, address: str, run: Path) -> Page:
    ReviewQueue(run).clear()
    return visit(address)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """As a German Excel writes it."""
    lines = ["Nr;Titel", *(f"{number};{text}" for number, text in ROWS), "x-4;"]
    path = tmp_path / "neue.csv"
    path.write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    return path


def suggest(page: Page, text: str, first: str) -> None:
    page.get_by_label("Document", exact=True).fill(text)
    expect(page.locator("#list > li:not([hidden]) .name").first).to_have_text(first)


def open_table(page: Page, table: Path, documents: int = 3) -> None:
    page.set_input_files("#files", [table])
    expect(page.locator("#documents-state")).to_contain_text(f"for all {documents} documents")


def test_a_table_becomes_a_list_of_documents_with_their_labels(page: Page, table: Path) -> None:
    open_table(page, table)
    expect(page.locator("#toast")).to_contain_text("neue.csv: 3 documents, text from Titel.")
    expect(page.locator("#toast")).to_contain_text("1 row left out, such as neue.csv:5")
    rows = page.locator("#documents-list > li")
    expect(rows).to_have_count(3)
    expect(rows.nth(0).get_by_role("list", name="Labels of w-1")).to_contain_text("wine")
    expect(rows.nth(1)).to_contain_text("fishing quota")
    page.get_by_role("searchbox", name="Search").fill("butter")
    expect(rows).to_have_count(1)
    expect(page.locator("#documents-found")).to_have_text("1 document found.")
    page.get_by_role("searchbox", name="Search").fill("")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download all as CSV").click()
    found = list(csv.DictReader(Path(saved.value.path()).read_text("utf-8-sig").splitlines()))
    assert [x["document"] for x in found if x["rank"] == "1"] == ["w-1", "f-2", "m-3"]
    page.get_by_role("link", name="f-2").click()
    expect(page.locator("#text")).to_have_value(ROWS[1][1])
    expect(page.locator("#place")).to_have_text("2 of 3")
    page.get_by_role("link", name="All documents").click()
    expect(rows).to_have_count(3)


def test_work_survives_opening_a_file_and_a_reload(page: Page, table: Path) -> None:
    suggest(page, WINE, "wine")
    page.get_by_role("button", name="Reject customs duty").click()
    rejected = page.get_by_role("button", name="Reject customs duty")
    expect(rejected).to_have_attribute("aria-pressed", "true")
    page.locator("#threshold").fill("3")
    open_table(page, table, 4)
    expect(page.locator("#documents-title")).to_have_text("4 documents")  # the typed one is there
    page.reload()
    expect(page.locator("#documents-title")).to_have_text("4 documents")
    page.locator("#documents-list a", has_text=re.compile("^text$")).click()
    expect(page.locator("#text")).to_have_value(WINE)
    expect(rejected).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#threshold-value")).to_have_text("3%")
    rejected.click()
    expect(rejected).to_have_attribute("aria-pressed", "false")
    open_table(page, table, 4)  # again: nothing is there twice
    page.get_by_role("button", name="Close all").click()
    expect(page.get_by_role("link", name="Documents")).to_be_hidden()
    expect(page.locator("#text")).to_have_value("")
    page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="Documents 4")).to_be_visible()


def test_a_reload_does_not_wait_for_the_browsers_database(visit: Opener, address: str) -> None:
    page = visit(address, locale="en-GB")  # in a context of its own
    page.add_init_script("indexedDB.open = () => { throw new Error('no database today'); }")
    page.reload()
    suggest(page, WINE, "wine")
    page.get_by_role("button", name="Expert view").click()
    page.locator("#text").press_sequentially("Red ")  # kept before the pause that follows typing
    page.reload()
    expect(page.locator("#text")).to_have_value(re.compile("Red "))
    expect(page.locator("#list .name").first).to_have_text("wine")
    expect(page.get_by_role("button", name="Expert view")).to_have_attribute("aria-pressed", "true")


def test_each_tab_keeps_its_own_documents(visit: Opener, address: str, table: Path) -> None:
    page = visit(address, locale="en-GB")
    suggest(page, WINE, "wine")
    page.wait_for_timeout(400)  # until it is kept
    other = page.context.new_page()
    other.goto(address)
    expect(other.locator("#text")).to_have_value(WINE)
    other.locator("#text").fill("Butter of dairies")
    other.wait_for_timeout(400)
    for _ in range(2):
        page.reload()
        expect(page.locator("#text")).to_have_value(WINE)
    other.reload()
    expect(other.locator("#text")).to_have_value("Butter of dairies")
    other.close()


def test_rows_without_ids_are_not_called_by_their_numbers(
    page: Page, run: Path, tmp_path: Path
) -> None:
    table = tmp_path / "bare.csv"
    table.write_text("\n".join(["Titel", *(f'"{text}"' for _, text in ROWS)]))
    open_table(page, table)
    page.reload()
    expect(page.locator("#documents-title")).to_have_text("3 documents")
    page.get_by_role("button", name="Review these").click()
    expect(page.locator("#review-name")).to_have_text(re.compile(r"^bare\.csv:[234]$"))
    assert {x.id[:5] for x in ReviewQueue(run).waiting()} == {"text-"}


def test_documents_are_reviewed_with_the_keyboard_alone(
    page: Page, table: Path, run: Path, address: str
) -> None:
    open_table(page, table)
    page.get_by_role("button", name="Review these").click()
    expect(page.locator("#review-count")).to_have_text("0 of 3 done")
    expect(page.locator("#review-why")).to_contain_text(
        re.compile("not sure about|may be missing|is sure about")
    )
    first = page.locator("#text").input_value()
    assert first in {text for _, text in ROWS}
    expect(page.locator("#text")).not_to_be_editable()
    expect(page.locator("button.label").first).to_be_focused()
    best = page.locator("#list .name").first.inner_text()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name=f"Accept {best}")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.keyboard.press("/")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("apicult")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Take back bee-keeping")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    expect(page.locator("#review-count")).to_have_text("1 of 3 done")
    expect(page.locator("#text")).not_to_have_value(first)
    expect(page.locator("button.label").first).to_be_focused()
    page.keyboard.press("b")
    expect(page.locator("#text")).to_have_value(first)
    expect(page.locator("#review-why")).to_contain_text("Done.")
    page.reload()  # what was decided is with the service
    expect(page.locator("#review-count")).to_have_text("1 of 3 done")
    expect(page.locator("#text")).not_to_have_value(first)
    expect(page.locator("button.label").first).to_be_focused()
    second = page.locator("#text").input_value()
    page.keyboard.press("s")
    expect(page.locator("#review-count")).to_have_text("1 of 3 done, 1 skipped")
    expect(page.locator("#text")).not_to_have_value(second)
    expect(page.locator("button.label").first).to_be_focused()
    page.keyboard.press("d")
    expect(page.locator("#review-end")).to_contain_text("All done: 2 documents reviewed, 1 skipped")
    back = page.locator("#review-end").get_by_role("link", name="Back to your documents")
    expect(back).to_have_attribute("href", "#documents")
    entries = FeedbackStore(run).history(limit=2)
    assert [x.verdict for x in entries] == ["added", "accepted"]
    assert {x.document for x in entries} <= {number for number, _ in ROWS}
    page.goto(f"{address}#suggest")  # and the documents that were open are still there
    expect(page.locator("#text")).to_have_value(ROWS[0][1])


def test_the_field_for_labels_can_be_left_where_nothing_is_suggested(
    page: Page, run: Path, address: str
) -> None:
    ReviewQueue(run).add([NewDocument("zzzz qqqq", "nonsense"), NewDocument("xxxx vvvv", "more")])
    page.goto(f"{address}#review")
    expect(page.locator("#review-count")).to_have_text("0 of 2 done")
    expect(page.locator("#text")).to_have_value(re.compile("zzzz|xxxx"))
    page.keyboard.press("/")
    page.keyboard.type("no such label")
    expect(page.locator("#attach-none")).to_have_text("No label has “no such label” in its names.")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Create a new label").click()
    dialog = page.get_by_role("dialog", name="Add a label")
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("no such label")
    expect(dialog.get_by_label("ID", exact=True)).to_have_value("no-such-label")
    page.keyboard.press("Escape")
    page.locator("#attach").fill("apicult")
    expect(page.get_by_role("option")).to_have_count(1)
    expect(page.locator("#attach-none")).to_be_hidden()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#attach")).not_to_be_focused()
    page.keyboard.press("s")
    expect(page.locator("#review-count")).to_have_text("0 of 2 done, 1 skipped")


def test_what_is_asked_about_is_shown_and_not_called_missing(
    page: Page, run: Path, address: str
) -> None:
    suggested = [("2560", 0.1)]  # depl wants to know about it, however unlikely it is
    ReviewQueue(run).add([NewDocument(WINE, "one", "", suggested)])
    page.goto(f"{address}#review")
    expect(page.locator("button.label").first).to_be_focused()
    page.locator("#threshold").fill("100")
    expect(page.locator("#list > li:not([hidden])")).not_to_have_count(0)
    expect(page.locator("#nothing")).to_be_empty()


def test_files_that_join_others_are_said_to(page: Page, table: Path, tmp_path: Path) -> None:
    open_table(page, table)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"{name}: {WINE}")
    page.set_input_files("#files", [tmp_path / "a.txt", tmp_path / "b.txt"])
    expect(page.locator("#toast")).to_contain_text("Added below the 3 that were open.")
    page.set_input_files("#files", [tmp_path / "a.txt"])
    expect(page.locator("#toast")).to_contain_text("What is in it was open already.")


def test_an_empty_table_and_a_second_label_of_one_name_are_said(
    page: Page, run: Path, tmp_path: Path, address: str
) -> None:
    (tmp_path / "empty.csv").write_text("")
    page.set_input_files("#files", [tmp_path / "empty.csv"])
    expect(page.locator("#toast")).to_contain_text("There is no record in empty.csv.")
    page.goto(f"{address}#labels")
    page.get_by_role("button", name="Add a label").click()
    dialog = page.get_by_role("dialog", name="Add a label")
    dialog.get_by_label("Name", exact=True).fill("Wine")
    dialog.get_by_role("button", name="Save").click()
    toast = page.locator("#toast")
    expect(toast).to_contain_text("Added “Wine”. Another label has this name: 2560.")
    toast.get_by_role("button", name="Undo").click()
    expect(page.locator("#found")).to_have_text("14 labels")


def test_several_reviewers_each_with_a_token(
    visit: Opener, serving: Callable, run: Path, tmp_path: Path, table: Path
) -> None:
    own = Path(shutil.copytree(run, tmp_path / "laws"))
    ReviewQueue(own).clear()
    known = tuple(Token.of(name * 8, Role.FEEDBACK, name) for name in ("anna", "ben"))
    with serving(own, Access(tokens=known)) as url:
        pages = []
        for name in ("anna", "ben"):
            page = visit(url, expected=("401",), base_url=url)
            page.evaluate("token => sessionStorage.setItem('depl-token', token)", name * 8)
            page.goto(f"{url}#labels")
            page.reload()
            expect(page.locator("#visitor")).to_have_text(name)
            pages.append(page)
        anna, ben = pages
        expect(anna.get_by_role("button", name="Feedback only")).to_be_visible()
        expect(anna.get_by_role("button", name="Add a label")).to_be_hidden()
        open_table(anna, table)
        anna.get_by_role("button", name="Review these").click()
        expect(anna.locator("#review-count")).to_have_text("0 of 3 done")
        expect(anna.locator("#text")).not_to_have_value("")
        ben.goto(f"{url}#review")
        expect(ben.locator("#text")).not_to_have_value("")
        expect(ben.locator("#review-count")).to_have_text("0 of 3 done")
        assert ben.locator("#text").input_value() != anna.locator("#text").input_value()
        ben.get_by_role("button", name="Done, next").click()
        expect(ben.locator("#review-count")).to_have_text("1 of 3 done")
        anna.get_by_role("button", name="Done, next").click()
        expect(anna.locator("#review-others")).to_have_text("you 1, ben 1")
        assert ReviewQueue(own).progress().by == {"anna": 1, "ben": 1}
        for page in pages:
            page.goto("about:blank")


@pytest.mark.parametrize("role", [Role.READ, Role.FEEDBACK])
def test_a_token_that_was_asked_for_shows_what_it_allows(
    visit: Opener, serving: Callable, run: Path, role: Role
) -> None:
    with serving(run, Access(tokens=(Token.of("s" * 20, role, "anna"),))) as url:
        page = visit(f"{url}#labels", expected=("401", "403"), base_url=url)
        add = page.get_by_role("button", name="Add a label")
        review = page.get_by_role("link", name="Review")
        expect(review).to_be_visible()
        add.click()
        page.get_by_role("dialog", name="Add a label").get_by_label("Name", exact=True).fill("Tin")
        page.get_by_role("button", name="Save").click()
        asking = page.get_by_role("dialog", name="This service needs a token")
        asking.get_by_label("Token").fill("s" * 20)
        asking.get_by_role("button", name="Continue").click()
        expect(page.locator("#visitor")).to_have_text("anna")
        expect(page.get_by_role("button", name="Sign out")).to_be_attached()
        expect(page.locator("#add")).to_have_attribute("hidden", "")
        expect(review).to_be_visible(visible=role is Role.FEEDBACK)
        chip = "Feedback only" if role is Role.FEEDBACK else "Read-only"
        expect(page.locator("#read-only")).to_have_text(chip)
        page.goto("about:blank")


def test_an_empty_review_says_what_to_do(page: Page, address: str) -> None:
    page.goto(f"{address}#review")
    expect(page.locator("#review-end")).to_contain_text("Nothing waits to be reviewed.")
    page.locator("#review-end").get_by_role("link", name="Open a table").click()
    suggest(page, WINE, "wine")


def test_the_tree_is_browsed_with_the_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}#labels")
    page.get_by_role("button", name="Tree").click()
    told = page.locator("#tree-found")
    expect(told).to_have_text("The tree has 1 branch. 11 labels are not in it.")
    item = {x: page.locator(f"#tree [data-id='{x}']") for x in ("4523", "tram", "driver")}
    expect(item["tram"]).to_be_visible()  # what is below the only label at the top
    item["4523"].focus()
    page.keyboard.press("ArrowLeft")
    expect(item["tram"]).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(item["tram"]).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(item["driver"]).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(item["driver"]).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(item["tram"]).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(item["driver"]).to_be_hidden()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="tramway")).to_be_focused()
    card = page.locator("#label-card")
    expect(card).to_contain_text("Broader: rail transport. Narrower: tram driver.")
    card.locator(".family").get_by_role("link", name="tram driver").click()
    expect(page.get_by_role("heading", name="tram driver")).to_be_visible()
    page.get_by_role("button", name="Show in the tree").click()
    expect(item["driver"]).to_be_focused()


def test_a_suggestion_names_what_is_narrower(page: Page) -> None:
    suggest(page, "Freight trains on railway track, signalling", "rail transport")
    page.locator("button.label").first.click()
    expect(page.locator(".why:visible .place")).to_contain_text("Narrower: tramway.")
    expect(page.locator(".why:visible")).to_contain_text("What speaks for it most: ")
    expect(page.locator(".parts")).to_be_hidden()
    page.get_by_role("button", name="Expert view").click()
    expect(page.locator(".parts")).to_be_visible()
    page.reload()  # it is remembered, and so is the text
    expect(page.locator("#list .name").first).to_have_text("rail transport")
    expect(page.get_by_role("button", name="Expert view")).to_have_attribute("aria-pressed", "true")


def test_the_slider_says_what_it_does_to_this_document(page: Page) -> None:
    suggest(page, WINE, "wine")
    page.locator("#threshold").fill("50")
    words = page.locator("#threshold-words")
    expect(words).to_contain_text(re.compile(r"^2 labels for this document: .* right\."))
    expect(words).to_contain_text("move right, and customs duty")
    page.get_by_text("What does this do?").click()
    expect(page.locator(".meaning p")).to_contain_text("about 30 turn out to be right")
    page.get_by_role("button", name="All", exact=True).click()
    expect(page.locator("#threshold-value")).to_have_text("0%")


def test_a_service_for_looking_only_says_how_to_change_that(
    visit: Opener, serving: Callable, run: Path
) -> None:
    with serving(run, Access()) as url:
        page = visit(url)
        page.get_by_role("button", name="Read-only").click()
        advice = page.get_by_role("dialog", name="What you can do here")
        expect(advice).to_contain_text("depl serve RUN --allow-writes")
        page.keyboard.press("Escape")
        expect(page.get_by_role("link", name="Review")).to_be_hidden()
        suggest(page, WINE, "wine")
        expect(page.locator(".verdict").first).to_be_hidden()
        page.goto("about:blank")


def test_messages_are_for_people(visit: Opener, address: str) -> None:
    page = visit(address, expected=("422", "500", "404", "403"))
    said = page.evaluate(
        """async () => {
          const { call } = await import("/api.js");
          const found = [];
          for (const [method, path, body] of [
            ["POST", "v1/predict", { texts: [] }],
            ["POST", "v1/predict", { text: 1 }],
            ["GET", "v1/labels/none"],
            ["POST", "v1/review/7", { state: "done" }],
            ["GET", "v1/nowhere"],
          ]) {
            const say = ({ title, message }) => found.push(`${title} ${message}`);
            await call(method, path, { body }).catch(say);
          }
          return found;
        }"""
    )
    assert len(said) == 5
    for message in said:
        assert not re.search(r"/v1|HTTP|\b[45]\d\d\b|JSON|header|texts", message), message


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_serious(
    visit: Opener, address: str, run: Path, table: Path, width: int, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    ReviewQueue(run).clear()
    page = visit(address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    # What is just fading in or out has another contrast.
    page.evaluate("document.getElementById('toast').style.transition = 'none'")

    def check(view: str) -> None:
        found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
        serious = [
            (view, x["id"], [node["html"][:200] for node in x["nodes"][:3]])
            for x in found
            if x["impact"] in ("serious", "critical")
        ]
        assert serious == []
        assert page.evaluate("document.documentElement.scrollWidth") == width, view

    suggest(page, WINE, "wine")
    page.get_by_role("button", name="Expert view").click()
    page.locator("button.label").first.click()
    expect(page.locator(".parts")).to_be_visible()
    check("suggest")
    open_table(page, table, 4)
    check("documents")
    page.get_by_role("button", name="Review these").click()
    expect(page.locator("#review-count")).to_have_text("0 of 4 done")
    expect(page.locator("button.label").first).to_be_focused()
    check("review")
    page.goto(f"{address}#labels")
    expect(page.locator("#rows a")).to_have_count(14)
    check("labels")
    page.get_by_role("button", name="Tree").click()
    expect(page.locator("#tree [data-id='tram']")).to_be_visible()
    check("tree")
    page.goto(f"{address}#label/tram")
    expect(page.get_by_role("heading", name="tramway")).to_be_visible()
    check("label")
    page.get_by_role("button", name="Edit").click()
    check("edit")


def test_each_run_of_a_service_can_be_chosen(
    visit: Opener, serving: Callable, run: Path, fitted_run: Path
) -> None:
    with serving({"laws": fitted_run, "trams & trains": run}, Access()) as address:
        page = visit(address)
        choice = page.get_by_role("combobox", name="Labels of")
        expect(choice).to_have_value("laws")
        expect(page.locator("#run")).to_have_text("12 labels, 48 training documents")
        choice.select_option("trams & trains")
        expect(page.locator("#run")).to_have_text("14 labels, 48 training documents")
        expect(choice).to_have_value("trams & trains")
        suggest(page, "The tram driver of the tramway", "tram driver")
        choice.select_option("laws")
        expect(page.locator("#run")).to_have_text("12 labels, 48 training documents")


def test_a_single_run_is_named_and_nothing_is_to_be_chosen(page: Page) -> None:
    expect(page.locator("#run")).to_contain_text("laws: 14 labels")
    expect(page.locator("#runs")).to_be_hidden()
