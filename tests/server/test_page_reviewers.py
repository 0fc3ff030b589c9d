"""Several people review on the page, and what they see when something is in the way."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the service needs depl[serve]")
pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

import xlsxwriter
from playwright.sync_api import Page, Route, expect

from depl.core.corpus import Label
from depl.labels.feedback import Decision, FeedbackStore
from depl.labels.review_queue import NewDocument, ReviewQueue
from depl.model.classifier import Classifier
from depl.server.security import Access
from depl.server.tokens import Role, Token

Opener = Callable[..., Page]

WINE = "Customs duty on sparkling wine from third countries, made of grapes from steep vineyards"
MILK = "Skimmed milk powder and butter of dairies"
VERDICTS = "#list > li:not([hidden]) .verdict"


@pytest.fixture(scope="module")
def run(fitted_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of its own, with two documents to review and a label that has another name."""
    own = Path(shutil.copytree(fitted_run, tmp_path_factory.mktemp("reviewers") / "laws"))
    model = Classifier.load(own)
    model.add_labels((Label("cern", "CERN", ("European nuclear research",)),))
    model.add_labels((Label("power", "nuclear energy", ("atomic energy",)),))
    ReviewQueue(own).add([NewDocument(WINE, "w-1"), NewDocument(MILK, "m-2")])
    return own


@pytest.fixture(scope="module")
def address(serving: Callable, run: Path) -> Iterator[str]:
    """A service at which everybody on this machine may work."""
    with serving(run, Access(local_writes=True)) as url:
        yield url


@contextmanager
def as_anna(visit: Opener, serving: Callable, run: Path) -> Iterator[Page]:
    """The review as anna sees it; ben has a token, too."""
    known = tuple(Token.of(name * 8, Role.FEEDBACK, name) for name in ("anna", "ben"))
    with serving(run, Access(tokens=known)) as url:
        page = visit(f"{url}#labels", expected=("401",), base_url=url)
        page.evaluate("sessionStorage.setItem('depl-token', 'anna'.repeat(8))")
        page.reload()
        expect(page.locator("#visitor")).to_have_text("anna")
        page.goto(f"{url}#review")
        expect(page.locator("button.label").first).to_be_focused()
        yield page
        page.goto("about:blank")


def verdict(page: Page, label: str, kind: str):
    row = page.locator(f"#list > li[data-id='{label}']")
    return row.locator(f"[data-verdict={kind}]")


def test_what_somebody_else_decided_is_shown_as_theirs_and_stays(
    visit: Opener, serving: Callable, run: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(run, tmp_path / "laws"))
    ReviewQueue(own).clear()
    ReviewQueue(own).add([NewDocument(WINE, "w-1")])
    store = FeedbackStore(own)
    store.add(WINE, [Decision("2560", "accepted"), Decision("77", "added")], id="w-1", by="ben")
    with as_anna(visit, serving, own) as page:
        expect(page.locator("#review-why")).to_contain_text("ben decided about labels outlined")
        accept = verdict(page, "2560", "accepted")
        expect(accept).to_have_class("by-others")
        expect(accept).to_have_attribute("aria-pressed", "true")
        expect(accept).to_have_attribute("title", "Accept wine (accepted by ben)")
        accept.click()  # anna thinks so, too
        expect(accept).not_to_have_class("by-others")
        expect(accept).to_have_attribute("aria-pressed", "true")
        assert [(x.verdict, x.by) for x in store.history(label="2560")] == [
            ("accepted", "anna"),
            ("accepted", "ben"),
        ]
        accept.click()  # and takes back hers alone
        expect(accept).to_have_class("by-others")
        verdict(page, "2560", "rejected").click()
        expect(verdict(page, "2560", "rejected")).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="added by ben").click()
        expect(page.locator("#added li")).to_have_count(0)
        found = {(x.label, x.verdict, x.by): x.undone for x in store.history()}
        assert found.pop(("2560", "accepted", "anna")) is not None
        assert set(found.values()) == {None}  # nothing of ben's was undone
        assert ("77", "rejected", "anna") in found
        page.keyboard.press("d")
        expect(page.locator("#review-count")).to_have_text("1 of 1 done")
        page.locator("#review-back").click()
        expect(page.locator("#review-why")).to_contain_text("Done by you.")


def test_a_review_that_cannot_begin_shows_no_other_document(visit: Opener, address: str) -> None:
    page = visit(address, expected=("503",))
    page.get_by_label("Document", exact=True).fill("A document that is no part of the review: wine")
    expect(page.locator("button.label").first).to_be_visible()
    down = re.compile("/v1/review/next$")

    def refuse(route: Route) -> None:
        route.fulfill(status=503, headers={"Retry-After": "1"}, json={"error": {"message": "no"}})

    page.route(down, refuse)
    page.goto(f"{address}#review")
    expect(page.locator("#review-end")).to_contain_text("The service is busy.")
    expect(page.locator("#document")).to_be_hidden()
    expect(page.locator("#results")).to_be_hidden()
    expect(page.get_by_role("button", name="Done, next")).to_be_hidden()
    page.unroute(down)
    page.locator("#review-end").get_by_role("button", name="Try again").click()
    expect(page.locator("#text")).to_have_value(re.compile("sparkling|Skimmed"))
    expect(page.locator("#review-end")).to_be_hidden()
    page.goto(f"{address}#suggest")
    expect(page.locator("#text")).to_have_value(re.compile("no part of the review"))


def test_too_many_wrong_tokens_are_called_that(visit: Opener, address: str) -> None:
    page = visit(address, expected=("429",))
    message = "There were 10 wrong tokens from this address. Try again later."
    page.route(
        re.compile("/v1/review/next$"),
        lambda route: route.fulfill(status=429, json={"error": {"message": message}}),
    )
    page.goto(f"{address}#review")
    expect(page.locator("#review-end")).to_contain_text("Too many wrong tokens")


def test_why_a_decision_was_not_kept_is_said(visit: Opener, address: str) -> None:
    page = visit(address, expected=("500",))
    reason = "feedback.sqlite cannot be written (disk full). Free some space."
    page.route(
        re.compile("/v1/feedback$"),
        lambda route: route.fulfill(status=500, json={"error": {"message": reason}}),
    )
    page.get_by_label("Document", exact=True).fill(WINE)
    verdict(page, "2560", "accepted").click()
    expect(page.locator("#toast")).to_contain_text(
        f"The decision about “wine” was not kept. {reason}"
    )


def test_keys_bring_the_focus_back_before_they_decide(visit: Opener, address: str) -> None:
    page = visit(f"{address}#review")
    expect(page.locator("button.label").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    second = page.locator("#list > li:not([hidden]) button.label").nth(1)
    expect(second).to_be_focused()
    page.locator("#text").click()
    page.keyboard.press("r")
    expect(second).to_be_focused()
    expect(page.locator(f"{VERDICTS} [aria-pressed=true]")).to_have_count(0)
    second.evaluate("button => button.blur()")
    page.keyboard.press("ArrowDown")
    expect(second).to_be_focused()
    page.get_by_text("Keyboard").click()
    page.keyboard.press("ArrowUp")
    expect(second).to_be_focused()


def test_labels_are_found_by_what_they_are_called_first(visit: Opener, address: str) -> None:
    page = visit(f"{address}#review")
    expect(page.locator("button.label").first).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("nuclear")
    options = page.get_by_role("option")
    expect(options).to_have_text(
        [
            "nuclear energy power",
            "nuclear safety 4347",
            "CERN cernalso called European nuclear research",
        ]
    )
    expect(options.last).to_be_in_viewport()
    page.locator("#attach").fill("energy atom")  # in any order
    expect(options).to_have_text(["nuclear energy poweralso called atomic energy"])
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("s")  # what was searched for one document is not meant for the next
    expect(page.locator("#review-count")).to_contain_text("1 skipped")
    expect(page.locator("#attach")).to_have_value("")
    page.goto(f"{address}#labels")
    page.get_by_role("searchbox", name="Search").fill("nuclear")
    expect(page.locator("#rows .row-head a")).to_have_text(
        ["nuclear energy", "nuclear safety", "CERN"]
    )
    row = page.locator("#rows li").last
    expect(row).to_have_text(re.compile("^CERN.*Also called European nuclear research$"))
    row.get_by_role("link").click()  # names are no description of themselves
    expect(page.locator("#label-name")).to_have_text("CERN")
    expect(page.get_by_role("heading", name="Description")).to_have_count(0)


def test_workbooks_are_opened_on_the_page(visit: Opener, address: str, tmp_path: Path) -> None:
    page = visit(address, expected=("422",))
    path = tmp_path / "neu.xlsx"
    with xlsxwriter.Workbook(path) as book:
        cover = book.add_worksheet("Deckblatt")
        cover.write_row(0, 0, ["Zuständig:", "Frau Müller"])
        sheet = book.add_worksheet("Titel")
        for i, row in enumerate([("Nr", "Text"), ("1", WINE), ("2", MILK)]):
            sheet.write_row(i, 0, row)
    assert {".xls", ".ods"} <= set(page.locator("#files").get_attribute("accept").split(","))
    page.set_input_files("#files", [path])
    expect(page.locator("#toast")).to_have_text(
        "neu.xlsx: 2 documents, from sheet 'Titel' (not read: Deckblatt), text from Text."
    )
    codes = tmp_path / "codes.ods"
    codes.write_bytes(b"no spreadsheet")
    page.set_input_files("#files", [codes])
    expect(page.locator("#toast")).to_contain_text("not a spreadsheet that can be opened")
    (tmp_path / "codes.csv").write_text("A,B\n1,2\n3,4\n")
    page.set_input_files("#files", [tmp_path / "codes.csv"])
    dialog = page.get_by_role("dialog", name="How to read codes.csv")
    expect(dialog).to_contain_text("Nothing shows which column has the text. Choose it:")
    page.evaluate("indexedDB.deleteDatabase('depl')")


def test_the_page_and_its_reference_work_below_a_path(visit: Opener, address: str) -> None:
    """A proxy may have the service below a path of its own, and take that away."""
    page = visit(address)
    prefix = "https://example.org/tags/"

    def pass_on(route: Route) -> None:
        assert route.request.url.startswith(prefix), route.request.url
        target = route.request.url.replace(prefix, address)
        route.fulfill(response=route.fetch(url=target))

    page.route("https://example.org/**", pass_on)
    page.goto(prefix)
    expect(page.locator("#run")).to_contain_text("labels")
    page.wait_for_load_state("networkidle")
    page.get_by_role("link", name="For programs").click()
    expect(page.locator("openapi-explorer")).to_contain_text("List Labels")
    page.wait_for_load_state("networkidle")
    page.goto(f"{prefix}runs/laws/")
    expect(page.get_by_role("link", name="For programs")).to_have_attribute("href", "../../docs")
    page.wait_for_load_state("networkidle")


def test_words_that_nobody_wrote_are_no_description(visit: Opener, address: str) -> None:
    page = visit(address)
    said = page.evaluate(
        """async () => {
          const { aboutLabel } = await import("/dom.js");
          const label = { name: "sparkling wine", alt_names: ["fizz"] };
          return [
            "sparkling wine sparkle aerate wine cuvée aerate",
            "sparkling wine fizz",
            "sparkling wine wine with bubbles, made in cellars",
          ].map((description) => aboutLabel({ ...label, description }));
        }"""
    )
    assert said == [
        ["Typical words", "sparkle · aerate · wine · cuvée"],
        None,
        ["Description", "sparkling wine wine with bubbles, made in cellars"],
    ]
    page.get_by_label("Document", exact=True).fill(WINE)
    page.locator("#list > li[data-id='2560'] button.label").click()
    why = page.locator("#list > li[data-id='2560'] .why")
    expect(why.get_by_role("heading", name="Typical words")).to_be_visible()
    expect(why.locator(".description")).to_contain_text(" · ")


def test_one_uncertain_label_is_not_called_wrong(visit: Opener, address: str) -> None:
    page = visit(address)
    said = page.evaluate(
        """async () => {
          const { Threshold } = await import("/threshold.js");
          const threshold = new Threshold(() => {});
          const found = [];
          for (const probability of [0.9, 0.49, 0.2]) {
            threshold.explain([{ name: "wine", probability }]);
            found.push(document.getElementById("threshold-words").textContent);
          }
          return found;
        }"""
    )
    assert [x.partition(": ")[2].partition(".")[0] for x in said] == [
        "it is probably right",
        "it may be right or wrong",
        "it is probably wrong",
    ]
