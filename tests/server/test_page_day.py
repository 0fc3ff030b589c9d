"""A reviewer's day on the page: what was decided counts, what was learnt shows, nothing is lost."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

pytest.importorskip("fastapi", reason="the service needs depl[serve]")
pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from playwright.sync_api import Page, Route, expect

from depl.labels.feedback import FeedbackStore
from depl.labels.review_queue import NewDocument, ReviewQueue
from depl.pipeline.learn import learn
from depl.run.folder import Run
from depl.server.security import Access
from depl.server.tokens import Role, Token

Opener = Callable[..., Page]

WINE = "Customs duty on sparkling wine from third countries, made of grapes from steep vineyards"
FISH = "Catch quotas for cod and herring of fishing vessels in the North Sea"
COMBS = (  # that nothing but people's decisions connects with a label
    "Propolis and combs, foundations and smokers",
    "Smokers and combs with propolis for foundations",
    "Combs, propolis, smokers, foundations",
)


@pytest.fixture
def run(fitted_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted_run, tmp_path / "laws"))


@pytest.fixture
def address(serving: Callable, run: Path) -> Iterator[str]:
    with serving(run, Access(local_writes=True)) as url:
        yield url


def write(path: Path, texts: dict[str, str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("Nr", "Titel"), *texts.items()])
    return path


def open_table(page: Page, path: Path, documents: int) -> None:
    page.set_input_files("#files", [path])
    expect(page.locator("#documents-state")).to_contain_text(f"for all {documents} documents")


def chips(page: Page, document: str) -> list[str]:
    return page.get_by_role("list", name=f"Labels of {document}").locator("li").all_inner_texts()


def add_label(page: Page, search: str, name: str) -> None:
    page.locator("#attach").fill(search)
    expect(page.get_by_role("option")).to_have_count(1)
    page.locator("#attach").press("Enter")
    expect(page.get_by_role("button", name=f"Take back {name}")).to_be_visible()


def test_what_was_decided_is_in_the_list_in_files_and_in_the_review(
    visit: Opener, address: str, run: Path, tmp_path: Path
) -> None:
    page = visit(address)
    open_table(page, write(tmp_path / "acts.csv", {"w-1": WINE, "f-2": FISH}), 2)
    page.get_by_role("link", name="w-1").click()
    page.get_by_role("button", name="Reject wine").click()
    page.get_by_role("button", name="Accept customs duty").click()
    add_label(page, "apicult", "bee-keeping")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#toast")).to_contain_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert "wine" not in {x.split("\t")[2] for x in copied}
    page.get_by_role("link", name="All documents").click()
    own = page.get_by_role("list", name="Labels of w-1")
    expect(own.locator(".decided")).to_have_text(["✓customs duty", "✓bee-keeping"])
    expect(own.get_by_role("img", name="accepted")).to_have_count(1)
    assert not any(x.startswith("wine") for x in chips(page, "w-1"))
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download all as CSV").click()
    rows = list(csv.DictReader(Path(saved.value.path()).read_text("utf-8-sig").splitlines()))
    decided = {x["name"]: x["decision"] for x in rows if x["document"] == "w-1"}
    assert decided["customs duty"] == "accepted"
    assert decided["bee-keeping"] == "added"
    assert "wine" not in decided
    assert {x["decision"] for x in rows if x["document"] == "f-2"} == {""}
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download all as JSON").click()
    first, _ = json.loads(Path(saved.value.path()).read_text())["documents"]
    assert {x["name"]: x["decision"] for x in first["labels"]} == decided

    page.get_by_role("button", name="Review these").click()
    name = page.locator("#review-name")
    expect(name).to_have_text(re.compile("w-1|f-2"))
    expect(page.locator("button.label").first).to_be_focused()
    if name.inner_text() != "w-1":
        page.keyboard.press("s")
    expect(page.locator("#text")).to_have_value(WINE)
    rejected = page.get_by_role("button", name="Reject wine")
    expect(rejected).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Take back bee-keeping")).to_be_visible()
    assert {x.document for x in FeedbackStore(run).history()} == {"w-1"}


def test_nothing_can_be_copied_where_all_was_rejected(visit: Opener, address: str) -> None:
    page = visit(address)
    page.locator("#text").fill(WINE)
    page.locator("#threshold").fill("90")
    reject = page.locator("#list > li:not([hidden]) button[data-verdict=rejected]")
    expect(reject).to_have_count(2)
    for i in range(2):
        reject.nth(i).click()
    expect(page.get_by_role("button", name="Copy")).to_be_disabled()
    reject.first.click()
    expect(page.get_by_role("button", name="Copy")).to_be_enabled()


def test_what_was_learnt_is_said_and_shown(
    visit: Opener, address: str, run: Path, tmp_path: Path
) -> None:
    page = visit(address)
    table = {f"b-{i}": text for i, text in enumerate(COMBS)}
    open_table(page, write(tmp_path / "bees.csv", table), 3)
    for name in ("b-0", "b-1"):
        page.get_by_role("link", name=name).click()
        add_label(page, "apicult", "bee-keeping")
        page.get_by_role("link", name="All documents").click()
    expect(page.locator("#run")).to_contain_text("48 training documents")
    assert not any(x.startswith("bee-keeping") for x in chips(page, "b-2"))
    order = page.get_by_label("Order")
    expect(order.locator("option:not([hidden])")).to_have_count(2)
    learn(Run.open(run))
    assert httpx.post(f"{address}v1/reload", timeout=60).is_success
    page.get_by_role("link", name="Labels", exact=True).click()  # whoever looks again is told
    expect(page.locator("#toast")).to_have_text(
        "depl has learnt from 2 more documents: labels are suggested anew."
    )
    expect(page.locator("#run")).to_contain_text("50 training documents")
    page.get_by_role("link", name="Documents").click()
    expect(page.locator("#documents-state")).to_contain_text("new labels to 1 of them.")
    order.select_option("new")
    expect(page.locator("#documents-list > li").first).to_contain_text("b-2")
    assert re.fullmatch(r"bee-keeping\s*\d+%\s*new", chips(page, "b-2")[0])


def test_learning_is_noticed_by_the_next_suggestion(visit: Opener, address: str, run: Path) -> None:
    page = visit(address)
    page.locator("#text").fill(COMBS[0])
    expect(page.locator("#attach")).to_be_visible()
    add_label(page, "apicult", "bee-keeping")
    learn(Run.open(run))
    assert httpx.post(f"{address}v1/reload", timeout=60).is_success
    page.locator("#text").fill(COMBS[1])
    expect(page.locator("#toast")).to_contain_text("depl has learnt from 1 more document:")


def test_files_are_shown_where_they_were_added(visit: Opener, address: str, tmp_path: Path) -> None:
    page = visit(address)
    open_table(page, write(tmp_path / "many.csv", {f"n-{i}": f"{WINE} {i}" for i in range(30)}), 30)
    page.get_by_role("searchbox", name="Search").fill("n-1")
    expect(page.locator("#documents-found")).to_have_text("11 documents found.")
    open_table(page, write(tmp_path / "new.csv", {"x": FISH, "y": f"{FISH} again"}), 32)
    expect(page.locator("#documents-pager")).to_contain_text("26–32 of 32")
    expect(page.get_by_role("link", name="x", exact=True)).to_be_visible()


def test_lists_of_documents_go_on_when_the_service_is_back(
    visit: Opener, address: str, tmp_path: Path
) -> None:
    page = visit(address, expected=("ERR_",))
    page.clock.install()
    gone = True

    def trouble(route: Route) -> None:
        route.abort("connectionrefused") if gone else route.continue_()

    page.route("**/v1/predict", trouble)
    page.set_input_files("#files", [write(tmp_path / "acts.csv", {"w-1": WINE, "f-2": FISH})])
    expect(page.locator("#documents-trouble")).to_contain_text("The service cannot be reached.")
    gone = False
    page.clock.run_for(5_000)
    expect(page.locator("#documents-state")).to_contain_text("for all 2 documents")
    expect(page.locator("#documents-trouble")).to_be_hidden()


@contextmanager
def unreachable(page: Page, path: str) -> Iterator[None]:
    page.route(path, lambda route: route.abort("connectionrefused"))
    yield
    page.unroute(path)


def test_a_service_that_is_gone_loses_no_place_in_the_review(
    visit: Opener, address: str, run: Path
) -> None:
    ReviewQueue(run).add([NewDocument(WINE, "w-1"), NewDocument(FISH, "f-2")])
    page = visit(f"{address}#review", expected=("ERR_",))
    expect(page.locator("button.label").first).to_be_focused()
    first = page.locator("#text").input_value()
    toast = page.locator("#toast")
    best = page.locator("#list .name").first.inner_text()
    accepted = page.get_by_role("button", name=f"Accept {best}")
    with unreachable(page, "**/v1/feedback"):
        page.keyboard.press("a")
        expect(toast).to_contain_text(f"The decision about “{best}” was not kept.")
        expect(accepted).to_have_attribute("aria-pressed", "false")
    toast.get_by_role("button", name="Try again").click()
    expect(accepted).to_have_attribute("aria-pressed", "true")
    with unreachable(page, re.compile(r"/v1/review/\d+$")):
        page.locator("button.label").first.focus()
        page.keyboard.press("d")
        expect(toast).not_to_contain_text("The decision about")  # another failure, said before
        expect(toast).to_contain_text("The service cannot be reached.")
    assert page.locator("#text").input_value() == first
    page.keyboard.press("d")
    expect(page.locator("#review-count")).to_have_text("1 of 2 done")
    expect(page.locator("#text")).not_to_have_value(first)


def test_labels_of_one_document_are_never_decided_about_for_the_next(
    visit: Opener, address: str, run: Path
) -> None:
    ReviewQueue(run).add([NewDocument(WINE, "w-1"), NewDocument(FISH, "f-2")])
    page = visit(f"{address}#review")
    expect(page.locator("button.label").first).to_be_focused()
    first = page.locator("#text").input_value()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/predict", hold)
    page.keyboard.press("d")
    page.keyboard.press("a")  # by somebody who does not wait
    expect(page.locator("#text")).not_to_have_value(first)
    expect(page.locator("button.label")).to_have_count(0)
    page.keyboard.press("a")
    while not held:
        page.wait_for_timeout(20)
    held.pop().continue_()
    expect(page.locator("button.label").first).to_be_focused()
    page.keyboard.press("r")
    expect(page.locator("[data-verdict=rejected][aria-pressed=true]")).to_have_count(1)
    assert [x.verdict for x in FeedbackStore(run).history()] == ["rejected"]


def test_decisions_about_texts_of_windows_are_there_after_a_reload(
    visit: Opener, address: str, run: Path
) -> None:
    text = "Quality wines\r\nfrom vineyards"
    ReviewQueue(run).add([NewDocument(text, "w-1")])
    page = visit(f"{address}#review")
    expect(page.locator("button.label").first).to_be_focused()
    page.get_by_role("button", name="Accept wine").click()
    accepted = page.get_by_role("button", name="Accept wine")
    expect(accepted).to_have_attribute("aria-pressed", "true")
    page.evaluate("indexedDB.deleteDatabase('depl')")  # another browser
    page.reload()
    expect(page.locator("button.label").first).to_be_focused()
    expect(accepted).to_have_attribute("aria-pressed", "true")


def test_who_may_only_look_is_led_away_from_the_review(
    visit: Opener, serving: Callable, run: Path
) -> None:
    with serving(run, Access(tokens=(Token.of("s" * 20, Role.READ, "carla"),))) as url:
        page = visit(url, expected=("403",), base_url=url)
        page.evaluate("sessionStorage.setItem('depl-token', 's'.repeat(20))")
        page.goto(f"{url}#review")
        page.reload()
        expect(page.locator("#toast")).to_contain_text("not review them. “Read-only” says how")
        expect(page.locator("#review-bar")).to_be_hidden()
        assert page.url.endswith("#suggest")
        page.goto("about:blank")


def test_the_head_of_the_page_is_one_line(visit: Opener, serving: Callable, run: Path) -> None:
    with serving(run, Access(tokens=(Token.of("s" * 20, Role.FEEDBACK, "anna"),))) as url:
        page = visit(url, base_url=url)
        page.evaluate("sessionStorage.setItem('depl-token', 's'.repeat(20))")
        page.reload()
        expect(page.locator("#visitor")).to_have_text("anna")
        page.evaluate("document.getElementById('run').textContent += ', and much more'.repeat(9)")
        tops = "['expert', 'forget', 'visitor'].map(id => document.getElementById(id).offsetTop)"
        assert max(page.evaluate(tops)) < 40
        page.goto("about:blank")


def test_the_review_on_a_phone_begins_with_the_document(
    visit: Opener, address: str, run: Path
) -> None:
    ReviewQueue(run).add([NewDocument(f"{text}. " * 20, text[:4]) for text in (WINE, FISH)])
    page = visit(f"{address}#review", viewport={"width": 390, "height": 700}, has_touch=True)
    for count in ("0 of 2 done", "1 of 2 done"):
        expect(page.locator("#review-count")).to_have_text(count)
        expect(page.locator("button.label").first).to_be_focused()
        assert page.evaluate("scrollY") == 0
        done = page.get_by_role("button", name="Done, next")
        expect(done).to_be_in_viewport(ratio=1)
        page.mouse.wheel(0, 400)
        expect(done).to_be_in_viewport(ratio=1)  # wherever one has read to
        done.tap()
