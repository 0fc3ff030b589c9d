"""The page in a real browser, over the real service, on a small run."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the service needs depl[serve]")
pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from playwright.sync_api import Page, Request, Route, expect

from depl.core.corpus import Dataset
from depl.labels.feedback import FeedbackStore
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.server.app import PAGE
from depl.server.security import Access

WINE = "Customs duty on sparkling wine from third countries, made of grapes from steep vineyards"
FISH = "Catch quotas for cod and herring of fishing vessels in the North Sea"
Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def address(
    serving: Callable, fitted_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A service whose labels may be changed; tests put back what they change."""
    run = Path(shutil.copytree(fitted_run, tmp_path_factory.mktemp("page") / "laws"))
    with serving(run, Access(local_writes=True)) as url:
        yield url


@pytest.fixture
def page(visit: Opener, address: str) -> Page:
    return visit(address)


def shown(page: Page) -> list[str]:
    return page.locator("#list > li:not([hidden]) .name").all_text_contents()


def row(page: Page, name: str):
    return page.locator("#list > li").filter(has=page.get_by_text(name, exact=True))


def suggest(page: Page, text: str, first: str) -> None:
    page.get_by_label("Document", exact=True).fill(text)
    expect(page.locator("#list > li:not([hidden]) .name").first).to_have_text(first)


def slide(page: Page, percent: int) -> None:
    page.locator("#threshold").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')) }",
        percent,
    )


def test_labels_appear_while_typing_and_follow_the_text(page: Page) -> None:
    expect(page.locator("#nothing")).to_contain_text("Labels appear here as you type")
    expect(page.locator("#run")).to_contain_text("12 labels")
    page.get_by_label("Document", exact=True).press_sequentially("catch quota of cod", delay=5)
    expect(page.locator("#list .name").first).to_have_text("fishing quota")
    suggest(page, "Skimmed milk powder and butter of dairies", "milk product")
    values = [
        float(x)
        for x in page.eval_on_selector_all(
            "#list > li", "rows => rows.map(row => row.style.getPropertyValue('--p'))"
        )
    ]
    assert values == sorted(values, reverse=True)
    assert all(0 <= x <= 1 for x in values)
    expect(page.locator("#live")).to_contain_text("Most likely: milk product")
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.locator("#list > li")).to_have_count(0)
    expect(page.get_by_label("Document", exact=True)).to_be_focused()


def test_an_answer_to_an_older_text_is_given_up(page: Page) -> None:
    sent: list[Request] = []
    failed: list[Request] = []
    page.on("requestfailed", lambda request: failed.append(request))

    def slow_at_first(route: Route) -> None:
        sent.append(route.request)
        if len(sent) > 1:
            route.continue_()  # the first stays without an answer

    page.route("**/v1/predict", slow_at_first)
    with page.expect_request("**/v1/predict"):
        page.get_by_label("Document", exact=True).fill(WINE)
    expect(page.locator("#progress")).to_have_class("progress busy")
    expect(page.locator("#nothing .ghost")).to_have_count(6)
    suggest(page, FISH, "fishing quota")
    assert len(sent) == 2
    assert failed == sent[:1]
    expect(page.locator("#progress")).to_have_class("progress")


def test_a_label_explains_itself_and_lights_up_its_words(page: Page) -> None:
    # Python counts characters, JavaScript counts an emoji as two.
    suggest(page, f"🍷🍇 {WINE}", "wine")
    button = row(page, "wine").locator("button.label")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    why = row(page, "wine").locator(".why")
    expect(why).to_contain_text("Keywords found in this text")
    lit = page.locator("#marks mark").all_text_contents()
    assert "wine" in lit
    assert "grapes" in lit
    assert {x.lower() for x in lit} <= set(WINE.lower().replace(",", "").split())
    expect(page.locator("#lit")).to_have_text(f"{len(lit)} matches")
    assert why.locator(".words li").count() >= 2
    expect(why.locator(".parts li")).to_have_count(6)
    expect(why.locator(".near li").first).to_contain_text("wine")
    expect(why.get_by_role("link", name="More about this label")).to_have_attribute(
        "href", "#label/2560"
    )
    assert page.evaluate(  # the lit copy lies exactly below the text that is typed
        "['text', 'marks'].map(id => { const b = document.getElementById(id)"
        ".getBoundingClientRect(); return [b.x, b.y, b.width].join() })"
        ".every((x, _, all) => x === all[0])"
    )
    why.locator(".word").first.focus()
    page.keyboard.press("Escape")
    expect(why).to_be_hidden()
    expect(button).to_be_focused()
    expect(page.locator("#marks mark")).to_have_count(0)


def test_an_open_explanation_follows_the_text(page: Page) -> None:
    suggest(page, WINE, "wine")
    row(page, "wine").locator("button.label").click()
    expect(page.locator("#marks mark").first).to_be_attached()
    page.get_by_label("Document", exact=True).fill("Quality wines from vineyards")
    expect(page.locator("#marks mark")).not_to_have_count(0)
    assert "grapes" not in page.locator("#marks mark").all_text_contents()


def test_the_threshold_hides_what_is_less_likely(page: Page) -> None:
    suggest(page, WINE, "wine")
    slide(page, 50)
    assert shown(page) == ["wine", "customs duty"]
    expect(page.locator("#threshold-value")).to_have_text("50%")
    expect(page.locator("#threshold-words")).to_contain_text("2 labels for this document")
    page.get_by_role("button", name="less likely labels").click()
    assert len(shown(page)) > 2
    expect(page.locator("#list > li.weak").first).to_be_visible()
    page.get_by_role("button", name="Balanced").click()
    assert shown(page)[0] == "wine"
    slide(page, 100)
    assert shown(page) == []
    expect(page.locator("#nothing")).to_contain_text(
        "No label is 100% sure. The most likely is wine at"
    )
    expect(page.get_by_role("button", name="Copy")).to_be_disabled()
    page.get_by_role("button", name="Show it").click()
    assert shown(page) == ["wine"]


def test_one_band_alone(page: Page) -> None:
    suggest(page, WINE, "wine")
    rare = page.get_by_role("button", name="Labels with 10 to 99 training documents")
    expect(rare).to_be_hidden()  # for those who ask for it
    page.get_by_role("button", name="Expert view").click()
    rare.click()
    expect(page.locator("#list > li")).to_have_count(1)
    assert shown(page) == ["customs duty"]
    pressed = page.locator("#band-filter [aria-pressed=true]")
    expect(pressed).to_have_attribute("aria-label", "Labels with 10 to 99 training documents")
    page.get_by_role("button", name="All labels", exact=True).click()
    expect(page.locator("#list .name").first).to_have_text("wine")


def test_several_files_are_stepped_through_and_saved_together(
    visit: Opener, address: str, tmp_path: Path
) -> None:
    page = visit(address, expected=("422",))
    (tmp_path / "wine.txt").write_text(WINE)
    (tmp_path / "=fish.html").write_text(
        f"<title>no</title><script>var wine</script><p>{FISH}</p><p>Mackerel &amp; sprat</p>"
    )
    (tmp_path / "latin.md").write_bytes("Säuglingsmilch, milk of dairies".encode("latin-1"))
    (tmp_path / "scan.pdf").write_bytes(b"%PDF\x00\x01\xff")
    page.set_input_files("#files", sorted(tmp_path.iterdir(), reverse=True))
    expect(page.locator("#toast")).to_contain_text("scan.pdf is not a document: not a text")
    expect(page.locator("#documents-title")).to_have_text("3 documents")
    page.get_by_role("link", name="wine.txt").click()
    expect(page.locator("#place")).to_have_text("1 of 3")
    expect(page.locator("#list .name").first).to_have_text("wine")
    page.get_by_role("button", name="Next document").click()
    expect(page.locator("#text")).to_have_value(re.compile("^Säuglingsmilch"))
    page.get_by_role("button", name="Next document").click()
    assert page.locator("#text").input_value() == f"{FISH}\n\nMackerel & sprat"
    expect(page.locator("#list .name").first).to_have_text("fishing quota")
    expect(page.get_by_role("button", name="Next document")).to_be_disabled()

    slide(page, 50)
    with page.expect_download() as table:
        page.get_by_role("button", name="Download CSV").click()
    rows = list(csv.DictReader(Path(table.value.path()).read_text("utf-8-sig").splitlines()))
    assert {x["document"] for x in rows} == {"wine.txt", "latin.md", "'=fish.html"}
    assert [x["id"] for x in rows if x["document"] == "wine.txt"] == ["2560", "17"]
    assert all(float(x["probability"]) >= 0.5 for x in rows)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download JSON").click()
    result = json.loads(Path(saved.value.path()).read_text())
    assert result["threshold"] == 0.5
    assert [x["document"] for x in result["documents"]] == ["wine.txt", "latin.md", "=fish.html"]


def test_pdf_and_word_files_are_read_by_the_service(
    visit: Opener, address: str, tmp_path: Path
) -> None:
    page = visit(address, expected=("422",))
    docx = pytest.importorskip("docx", reason="documents need depl[documents]")
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    document = docx.Document()
    document.add_paragraph(FISH)
    document.save(str(tmp_path / "fish.docx"))
    sheet = canvas.Canvas(str(tmp_path / "wine.pdf"))
    sheet.drawString(20, 700, WINE)
    sheet.save()
    empty = canvas.Canvas(str(tmp_path / "scan.pdf"))
    empty.rect(1, 1, 99, 99)
    empty.save()
    page.set_input_files("#files", sorted(tmp_path.iterdir()))
    expect(page.locator("#toast")).to_contain_text("probably a scan")
    page.get_by_role("link", name="fish.docx").click()
    expect(page.locator("#place")).to_have_text("1 of 2")
    expect(page.locator("#text")).to_have_value(FISH)
    page.get_by_role("button", name="Next document").click()
    expect(page.locator("#text")).to_have_value(WINE)
    expect(page.locator("#list .name").first).to_have_text("wine")


def test_files_may_be_dropped(page: Page) -> None:
    dropped = page.evaluate_handle(
        "text => { const all = new DataTransfer();"
        " all.items.add(new File([text], 'a.txt')); return all }",
        FISH,
    )
    page.dispatch_event("body", "dragenter", {"dataTransfer": dropped})
    expect(page.locator("#drop")).to_be_visible()
    page.dispatch_event("body", "drop", {"dataTransfer": dropped})
    expect(page.locator("#drop")).to_be_hidden()
    expect(page.locator("#text")).to_have_value(FISH)
    expect(page.locator("#stepper")).to_be_hidden()
    expect(page.locator("#list .name").first).to_have_text("fishing quota")


def test_copies_tab_separated(page: Page, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    suggest(page, WINE, "wine")
    slide(page, 50)
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#toast")).to_have_text("Copied 2 labels as a table.")
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert [x.split("\t")[1:3] for x in lines] == [
        ["id", "name"],
        ["2560", "wine"],
        ["17", "customs duty"],
    ]


def test_the_labels_can_be_searched_and_browsed(page: Page) -> None:
    page.get_by_role("link", name="Labels", exact=True).click()
    expect(page.locator("#found")).to_have_text("12 labels")
    names = page.locator("#rows a").all_text_contents()
    assert names == sorted(names)
    numbers = page.locator("#histogram .number").all_text_contents()
    assert sum(map(int, numbers)) == 12
    page.get_by_role("button", name="1 label with no training documents").click()
    expect(page.locator("#rows a")).to_have_text(["bee-keeping"])
    page.get_by_role("button", name="1 label with no training documents").click()
    page.get_by_label("Sort by").select_option("count")
    expect(page.locator("#rows a").first).to_have_text("customs duty")
    page.get_by_role("searchbox", name="Search").fill("grape")
    expect(page.locator("#rows a")).to_have_text(["wine"])
    page.locator("#rows a").click()
    expect(page.get_by_role("heading", name="wine")).to_be_focused()
    card = page.locator("#label-card")
    expect(card).to_contain_text("Also called grape wine")
    expect(card).to_contain_text("6 training documents · ID 2560")
    assert card.locator(".weights li").count() > 2
    page.get_by_role("link", name="← All labels").click()
    page.get_by_role("searchbox", name="Search").fill("rail")
    expect(page.locator("#rows a")).to_have_text(["rail transport"])
    page.locator("#rows a").click()
    expect(page.locator("#label-card h2")).to_have_text("rail transport")
    card.locator(".close a").first.click()
    expect(page.locator("#label-card h2")).to_have_text("air transport")
    page.go_back()
    expect(page.locator("#label-card h2")).to_have_text("rail transport")
    page.get_by_role("link", name="← All labels").click()
    page.get_by_role("searchbox", name="Search").fill("zzz")
    expect(page.locator("#found")).to_have_text("No labels found.")


def test_a_new_label_is_suggested_at_once_and_undone(visit: Opener, address: str) -> None:
    page = visit(address, expected=("409",))
    text = "Freight trains with signalling on high speed track of railway undertakings"
    suggest(page, text, "rail transport")
    page.get_by_role("button", name="Create a new label").click()
    dialog = page.get_by_role("dialog", name="Add a label")
    expect(dialog.get_by_label("Name", exact=True)).to_be_focused()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_have_text("Please enter a name.")
    dialog.get_by_label("Name", exact=True).fill("Rail")
    expect(dialog.get_by_role("alert")).to_have_text("")
    dialog.get_by_label("Name", exact=True).fill("Rail <b>signalling</b>")
    expect(dialog.get_by_label("ID", exact=True)).to_have_value("rail-b-signalling-b")
    dialog.get_by_label("ID", exact=True).fill("2560")
    dialog.get_by_label("Alternative names").fill("train signals\n\n signalling")
    dialog.get_by_label("Description").fill("Signals\nfor trains")
    dialog.get_by_role("button", name="Use the current document").click()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("already")
    expect(dialog.get_by_label("ID", exact=True)).to_be_focused()
    dialog.get_by_label("ID", exact=True).fill("rail/1")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()

    new = row(page, "Rail <b>signalling</b>")
    expect(new).to_be_visible()
    expect(new.locator(".why")).to_contain_text("Signals for trains")
    assert page.locator("#list b").count() == page.locator("#list .context > b").count()
    new.get_by_role("link", name="More about this label").click()
    expect(page.get_by_role("heading", name="Rail <b>signalling</b>")).to_be_focused()
    page.get_by_role("button", name="Does it fit the current document?").click()
    expect(page.locator(".in-document .parts li")).to_have_count(5)
    page.get_by_role("button", name="Edit").click()
    edit = page.get_by_role("dialog")
    expect(edit.get_by_label("ID", exact=True)).to_be_hidden()
    edit.get_by_label("Name", exact=True).fill("rail signals")
    edit.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="rail signals")).to_be_visible()
    page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Rail <b>signalling</b>")).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    expect(page.locator("#found")).to_have_text("12 labels")
    undo = page.get_by_role("button", name="Undo last change")
    undo.click()
    expect(page.locator("#found")).to_have_text("13 labels")
    undo.click()
    expect(page.locator("#found")).to_have_text("12 labels")
    expect(undo).to_be_disabled()
    page.get_by_role("link", name="Suggest", exact=True).click()
    expect(page.locator("#list .name").first).to_have_text("rail transport")
    expect(new).to_have_count(0)


def test_labels_are_accepted_rejected_and_added_with_mouse_and_keyboard(
    visit: Opener, serving: Callable, fitted_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(fitted_run, tmp_path / "laws"))
    store = FeedbackStore(run)

    def kept() -> list[tuple[str, str, bool]]:
        return [(x.label, x.verdict, x.undone is None) for x in store.history()[::-1]]

    with serving(run, Access(local_writes=True)) as url:
        page = visit(url)
        suggest(page, WINE, "wine")
        accept = page.get_by_role("button", name="Accept wine")
        accept.click()
        expect(accept).to_have_attribute("aria-pressed", "true")
        assert kept() == [("2560", "accepted", True)]
        assert 0 < store.history()[0].probability <= 1
        reject = page.get_by_role("button", name="Reject wine")
        reject.click()  # the other way round: one of the two counts
        expect(reject).to_have_attribute("aria-pressed", "true")
        expect(accept).to_have_attribute("aria-pressed", "false")
        reject.click()  # and taken back
        expect(reject).to_have_attribute("aria-pressed", "false")
        assert kept() == [("2560", "accepted", False), ("2560", "rejected", False)]

        row(page, "wine").locator("button.label").focus()
        page.keyboard.press("Tab")
        expect(accept).to_be_focused()
        page.keyboard.press("Enter")
        expect(accept).to_have_attribute("aria-pressed", "true")
        field = page.get_by_role("combobox", name="Add a label from the vocabulary")
        field.press_sequentially("apicul")  # another name of bee-keeping
        expect(page.get_by_role("option")).to_have_count(1)
        field.press("Enter")
        added = page.get_by_role("button", name="Take back bee-keeping")
        expect(added).to_be_visible()
        field.press_sequentially("transport")
        expect(page.get_by_role("option")).to_have_count(2)
        field.press("ArrowDown")
        expect(page.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")
        field.press("Escape")
        expect(page.get_by_role("option")).to_have_count(0)
        assert kept()[2:] == [("2560", "accepted", True), ("77", "added", True)]

        suggest(page, FISH, "fishing quota")  # another document: nothing is decided about it
        expect(page.locator(".verdict [aria-pressed=true]")).to_have_count(0)
        expect(added).to_have_count(0)
        suggest(page, WINE, "wine")
        expect(accept).to_have_attribute("aria-pressed", "true")
        added.click()
        expect(added).to_have_count(0)
        assert kept()[3] == ("77", "added", False)


def test_with_the_keyboard_alone(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "text":
            break
    page.keyboard.type("sparkling wine and grapes, customs duty")
    expect(page.locator("#list > li:not([hidden])").nth(1)).to_be_visible()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('button.label')"):
            break
    here = "document.activeElement.closest('li').dataset.id"
    first = page.evaluate(here)
    page.keyboard.press("ArrowDown")
    second = page.evaluate(here)
    assert second != first
    assert page.locator("button.label[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    expect(page.locator(f"#list > li[data-id='{second}'] .words").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".why:visible")).to_have_count(0)
    page.keyboard.press("End")
    last = page.locator("#list > li:visible").last.get_attribute("data-id")
    assert page.evaluate(here) == last != first
    page.keyboard.press("Home")
    assert page.evaluate(here) == first
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_busy_service_is_asked_again(visit: Opener, address: str) -> None:
    page = visit(address, expected=("503", "ERR_"))
    answers = iter(["busy", "gone", "well"])

    def trouble(route: Route) -> None:
        now = next(answers, "well")
        if now == "busy":
            body = {"error": {"message": "Too many wait."}}
            route.fulfill(status=503, json=body, headers={"Retry-After": "1"})
        elif now == "gone":
            route.abort("connectionrefused")
        else:
            route.continue_()

    page.route("**/v1/predict", trouble)
    page.get_by_label("Document", exact=True).fill(WINE)
    alert = page.locator("#trouble")
    expect(alert).to_have_text("The service is busy. Try again in a moment.Try again")
    expect(alert).to_contain_text("The service cannot be reached.")  # after a second, by itself
    expect(page.get_by_label("Document", exact=True)).to_have_value(WINE)
    alert.get_by_role("button", name="Try again").click()
    expect(page.locator("#list .name").first).to_have_text("wine")
    expect(alert).to_be_hidden()


def test_asks_for_a_token_and_says_what_is_read_only(
    visit: Opener, serving: Callable, fitted_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(fitted_run, tmp_path / "run"))
    with serving(run, Access(token="open-sesame", token_for_all=True)) as url:
        page = visit(url, expected=("401",))
        dialog = page.get_by_role("dialog", name="This service needs a token")
        dialog.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_have_text("This token was not accepted.")
        dialog.get_by_label("Token").fill("open-sesame")
        dialog.get_by_role("button", name="Continue").click()
        suggest(page, WINE, "wine")
        page.reload()
        expect(page.locator("#run")).to_contain_text("12 labels")
        expect(dialog).to_be_hidden()
        page.get_by_role("button", name="Sign out").click()
        page.reload()
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#trouble")).to_contain_text("A token is needed.")
        page.goto("about:blank")
    with serving(run, Access(read_only=True)) as url:
        page = visit(f"{url}#labels")
        page.get_by_role("button", name="Read-only").click()
        advice = page.get_by_role("dialog", name="What you can do here")
        expect(advice).to_contain_text("start the service again without --read-only")
        advice.get_by_role("button", name="Close").click()
        expect(page.locator("#found")).to_have_text("12 labels")
        expect(page.get_by_role("button", name="Add a label")).to_be_hidden()
        page.goto(f"{url}#label/2560")
        expect(page.locator("#label-card h2")).to_have_text("wine")
        expect(page.get_by_role("button", name="Remove")).to_have_count(0)


def test_a_run_without_a_fusion_shows_scores(
    visit: Opener, serving: Callable, dataset: Dataset, tmp_path: Path
) -> None:
    run = fit(dataset.train, tmp_path / "scores", until="descriptions").path
    with serving(run, Access()) as url:
        page = visit(url)
        expect(page.locator("#run")).to_contain_text("scores: 12 labels")
        expect(page.locator("#threshold")).to_be_hidden()
        suggest(page, WINE, "wine")
        assert all(re.fullmatch(r"-?\d\.\d\d", x) for x in page.locator(".p").all_text_contents())
        row(page, "wine").locator("button.label").click()
        expect(row(page, "wine").locator(".why")).to_contain_text("Rank 1; 6 training documents")
        expect(page.locator(".why:visible [title*=log-odds]")).to_have_count(0)
        expect(page.locator("#threshold-words")).to_be_hidden()
        page.goto("about:blank")


def test_very_long_texts_stay_usable(page: Page) -> None:
    page.locator("#text").evaluate(
        "(area, text) => { area.value = text; area.dispatchEvent(new Event('input')) }",
        f"{WINE}. " * 14_000,
    )
    expect(page.locator("#lit")).to_contain_text("Only the first 1,000,000 characters are used")
    expect(page.locator("#list .name").first).to_have_text("wine", timeout=20_000)


# The luminance contrast of WCAG 2, between two colours as the browser computes them.
CONTRAST = """([selector, property]) => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const over = ([r, g, b, alpha = 1], base) =>
    [r, g, b].map((c, i) => alpha * c + (1 - alpha) * base[i]);
  const ground = (one) => {
    const own = rgb(getComputedStyle(one).backgroundColor);
    return own.length === 3 ? own : over(own, ground(one.parentElement));
  };
  const element = document.querySelector(selector);
  const front = light(rgb(getComputedStyle(element)[property]));
  const back = light(ground(property === "color" ? element : element.parentElement));
  return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_apart(visit: Opener, address: str, scheme: str) -> None:
    page = visit(address, color_scheme=scheme)
    page.get_by_role("button", name="Expert view").click()
    suggest(page, WINE, "wine")
    row(page, "wine").locator("button.label").click()
    expect(page.locator(".near")).to_be_visible()
    texts = (".run", "#text", "#counts", ".name", ".seen", ".p", ".why h4", ".description")
    for selector in (*texts, ".near .line", ".context", ".quiet", ".chip", "nav a", ".onward a"):
        assert page.evaluate(CONTRAST, [selector, "color"]) >= 4.5, selector
    # Lit words are read in the text area above them, whose colour they are given here.
    ink = "document.querySelector('.lit-3').style.color = getComputedStyle(document.body).color"
    page.evaluate(ink)
    assert page.evaluate(CONTRAST, [".lit-3", "color"]) >= 4.5
    for selector in (".label .bar > i", ".lean i"):
        assert page.evaluate(CONTRAST, [selector, "backgroundColor"]) >= 2, selector
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert dark == (scheme == "dark")


UNNAMED = """() => [...document.querySelectorAll("input, select, textarea, button, a, img")]
  .filter((one) => {
    if (one.tagName === "IMG") return !one.hasAttribute("alt");
    const labels = [...(one.labels ?? [])].map((label) => label.textContent).join("");
    return !(one.getAttribute("aria-label") || labels.trim() || one.textContent.trim());
  }).map((one) => one.outerHTML)"""


def test_everything_has_a_name_and_one_id(page: Page) -> None:
    suggest(page, WINE, "wine")
    row(page, "wine").locator("button.label").click()
    expect(page.locator(".near")).to_be_visible()
    page.get_by_role("button", name="Create a new label").click()
    page.get_by_role("button", name="Add an example").click()
    assert page.evaluate(UNNAMED) == []
    ids = page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    assert page.evaluate("document.documentElement.lang") == "en"
    for reference in ("aria-controls", "aria-describedby", "aria-labelledby", "for"):
        named = page.eval_on_selector_all(
            f"[{reference}]", "(all, name) => all.map(one => one.getAttribute(name))", reference
        )
        assert set(named) <= set(ids), reference


def test_nothing_overflows_or_jumps_on_a_phone(visit: Opener, address: str) -> None:
    page = visit(address, viewport={"width": 360, "height": 740}, has_touch=True)
    page.evaluate(
        "window.moved = 0; new PerformanceObserver(list => { for (const shift of list.getEntries())"
        " if (!shift.hadRecentInput) moved += shift.value }).observe({type: 'layout-shift',"
        " buffered: true})"
    )
    wide = "document.documentElement.scrollWidth"
    suggest(page, WINE, "wine")
    assert page.evaluate("moved") < 0.1
    row(page, "wine").locator("button.label").tap()
    expect(page.locator(".near")).to_be_visible()
    assert page.evaluate(wide) == 360
    page.goto(f"{address}#labels")
    expect(page.locator("#rows a")).to_have_count(12)
    assert page.evaluate(wide) == 360
    page.goto(f"{address}#label/2560")
    expect(page.locator(".weights")).to_be_visible()
    assert page.evaluate(wide) == 360


def test_motion_is_left_out_where_it_is_not_wanted(visit: Opener, address: str) -> None:
    page = visit(address, reduced_motion="reduce")
    suggest(page, WINE, "wine")
    style = "getComputedStyle(document.querySelector('.label .bar > i')).transitionDuration"
    assert page.evaluate(style) in ("0s", "0s, 0s")


HOSTILE = '"><script>window.ran = 1</script><img src=x onerror="window.ran = 2">'


def test_names_and_texts_with_markup_are_shown_and_not_run(
    visit: Opener, serving: Callable, fitted_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(fitted_run, tmp_path / "laws"))
    model = Classifier.load(run)
    model.rename_label("2560", f"wine {HOSTILE}")
    model.describe_label("2560", f"Sparkling wine {HOSTILE}")
    with serving(run, Access(local_writes=True)) as url:
        # Its own context: what ran must not be hidden by what another test left in the tab.
        page = visit(url, accept_downloads=True)
        suggest(page, f"{WINE} {HOSTILE}", f"wine {HOSTILE}")
        row(page, f"wine {HOSTILE}").locator("button.label").click()
        expect(row(page, f"wine {HOSTILE}").locator(".why")).to_contain_text("Keywords found")
        expect(page.locator("#marks")).to_contain_text(HOSTILE)
        link = row(page, f"wine {HOSTILE}").get_by_role("link", name="More about this label")
        link.click()
        expect(page.get_by_role("heading", name=f"wine {HOSTILE}")).to_be_visible()
        expect(page.locator("main")).to_contain_text(f"Sparkling wine {HOSTILE}")
        assert page.locator("img[onerror], body script:not([src])").count() == 0
        assert page.evaluate("window.ran") is None


def test_the_page_asks_nobody_else(visit: Opener, address: str) -> None:
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "innerHTML" not in text, path.name
        outside = [x for x in text.split('"') if x.startswith(("http:", "https:"))]
        assert set(outside) <= {"http://www.w3.org/2000/svg"}, path.name
    asked: list[str] = []
    page = visit("about:blank")
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    suggest(page, WINE, "wine")
    assert asked
    assert all(url.startswith(address) for url in asked)


def test_numbers_are_written_as_people_write_them(page: Page) -> None:
    said = page.evaluate(
        """async () => {
          const { plural, percent, trainedOn } = await import("/dom.js");
          const { learnBands, allBands } = await import("/bands.js");
          learnBands([
            { name: "a", first: 0, last: 0, labels: 1 },
            { name: "b", first: 1, last: 1, labels: 2 },
            { name: "c", first: 2, last: 1999, labels: 3 },
            { name: "d", first: 2000, last: null, labels: 4 },
          ]);
          return {
            plurals: [0, 1, 2, 45000].map((n) => plural(n, "match", "matches")),
            percents: [0, 0.004, 0.01, 0.394, 0.995, 1].map(percent),
            trained: [0, 1, 6].map((n) => trainedOn({ training_documents: n })),
            bands: allBands().map((band) => [band.name, band.long]),
          };
        }"""
    )
    assert said == {
        "plurals": ["0 matches", "1 match", "2 matches", "45,000 matches"],
        "percents": ["0%", "<1%", "1%", "39%", ">99%", "100%"],
        "trained": ["no training documents", "1 training document", "6 training documents"],
        "bands": [
            ["0", "no training documents"],
            ["1", "1 training document"],
            ["2–1,999", "2 to 1,999 training documents"],
            ["2,000+", "2,000 or more training documents"],
        ],
    }
