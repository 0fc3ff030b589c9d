"""Take the pictures of the page.

``python docs/draw_page.py data/eurlex57k data/debtags --out FOLDER``

A day of a reviewer's work, in a browser without a window: a sparse run is fitted on some acts, a
table of Excel with others is dropped on the page, and somebody who knows their labels reviews the
first of them. Then the run learns. The tree is that of a run on packages, whose labels have one.
FOLDER keeps the runs and the table, for the outputs in docs/review.md. It needs Chromium,
``playwright`` and ``pillow``.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xlsxwriter
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

IMAGES = Path(__file__).parent / "images"
DEPL = (sys.executable, "-m", "depl")

TRAINING, NEW, REVIEWED = 1200, 120, 30  # documents
OPEN = "32014D0327", "transport of dangerous goods"  # the document and label of the first picture
BRANCH = "biology"  # of the tree
SHOWN = "#list > li:not([hidden]) button.label"
DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """The documents of a split."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def some(corpus: Path, split: str, n: int) -> list[Row]:
    """Documents of a corpus, always the same, in the order of their ids."""
    rows = random.Random(0).sample(read(corpus / f"{split}.jsonl.xz"), n)
    return sorted(rows, key=lambda row: row["id"])


def fitted(corpus: Path, run: Path) -> Path:
    """A sparse run on some documents of a corpus; one that is there is taken as it is."""
    small = run.with_name(f"{run.name}-corpus")
    if run.exists():
        return run
    small.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) + "\n" for row in some(corpus, "train", TRAINING)]
    (small / "train.jsonl").write_text("".join(lines), encoding="utf-8")
    shutil.copy(corpus / "labels.jsonl", small)
    subprocess.run([*DEPL, "fit", small, "--out", run], check=True)
    return run


def written(rows: list[Row], path: Path) -> Path:
    """A table of Excel; a cell holds 32,767 characters."""
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ("ID", "Text"))
        for place, row in enumerate(rows, 1):
            sheet.write_row(place, 0, (row["id"], row["text"][:32_000]))
    return path


@contextmanager
def serving(run: Path) -> Iterator[str]:
    """The address of a run's page, at which labels may be decided about."""
    command = [*DEPL, "serve", run, "--port", "0", "--allow-writes"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stderr is not None
            line = service.stderr.readline()
            found = re.search(r"http://\S+", line)
            assert found, line + service.stderr.read()
            yield found[0].rstrip("/") + "/"
        finally:
            service.terminate()


def opened(browser: Browser, url: str, size: dict[str, int], **options: Any) -> Page:  # noqa: ANN401
    """A page of its own, as in a browser that was never here before."""
    page = browser.new_context(viewport=size, **options).new_page()
    page.goto(url)
    expect(page.locator("#run")).to_contain_text("labels")
    return page


def drop(page: Page, table: Path) -> None:
    """Open a table, and wait for its labels."""
    page.set_input_files("#files", [table])
    expect(page.locator("#documents-state")).to_contain_text("for all", timeout=120_000)


def take(page: Page, name: str, *, message: bool = False) -> None:
    """Keep what is seen, with or without the message at the foot."""
    if not message:
        page.locator("#toast").evaluate("box => box.classList.remove('shown')")
    page.mouse.move(0, 0)
    page.wait_for_timeout(600)  # until everything has moved to its place
    path = IMAGES / f"page-{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as picture:  # with fewer colours, it is a third as large
        few = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
        few.save(path, optimize=True)


def suggested(page: Page, name: str) -> Locator:
    """The row of a suggested label."""
    return page.locator("#list > li").filter(has=page.get_by_text(name, exact=True))


def open_label(page: Page) -> None:
    """A document of the list, with the reasons for one of its labels."""
    document, label = OPEN
    page.get_by_role("searchbox", name="Search").fill(document)
    page.get_by_role("link", name=document).click()
    suggested(page, label).locator("button.label").click()
    expect(page.locator(".why .near")).to_be_visible()


def decide(page: Page, labels: set[str]) -> None:
    """What somebody does who knows the labels of the document that is shown."""
    expect(page.locator(SHOWN).first).to_be_focused()
    rows = page.locator("#list > li:not([hidden])")
    shown = rows.evaluate_all("rows => rows.map(row => row.dataset.id)")
    for id, row in zip(shown, rows.all(), strict=True):
        button = row.locator(f"[data-verdict={'accepted' if id in labels else 'rejected'}]")
        with page.expect_response("**/v1/feedback"):
            button.click()
    for id in sorted(labels - set(shown)):
        page.locator("#attach").fill(id)
        with page.expect_response("**/v1/feedback"):
            page.get_by_role("option").filter(has=page.get_by_text(id, exact=True)).first.click()
    page.locator(SHOWN).first.focus()


def review(page: Page, labels: dict[str, set[str]]) -> None:
    """Review the first documents of the table."""
    page.get_by_role("button", name="Review these").click()
    shown = ""
    for done in range(REVIEWED):
        expect(page.locator("#review-name")).not_to_have_text(shown)
        shown = page.locator("#review-name").inner_text()
        decide(page, labels[shown])
        if done == 6:
            take(page, "review")
        page.keyboard.press("d")
    expect(page.locator("#review-count")).to_have_text(f"{REVIEWED} of {NEW} done")


def learn(run: Path, url: str) -> None:
    """Let the run learn, and the service take it over."""
    subprocess.run([*DEPL, "learn", run], check=True)
    asked = urllib.request.Request(f"{url}v1/reload", method="POST")
    with urllib.request.urlopen(asked) as answer:
        answer.read()


def draw_day(browser: Browser, url: str, run: Path, table: Path, rows: list[Row]) -> None:
    """From the table to the run that has learnt."""
    page = opened(browser, url, DESKTOP, color_scheme="light")
    drop(page, table)
    take(page, "documents")
    open_label(page)
    take(page, "light")
    dark = opened(browser, url, DESKTOP, color_scheme="dark")
    drop(dark, table)
    open_label(dark)
    take(dark, "dark")
    page.goto(f"{url}#documents")
    review(page, {row["id"]: set(row["labels"]) for row in rows})
    learn(run, url)
    page.goto(f"{url}#documents")
    expect(page.locator("#documents-state")).to_contain_text("learnt brings", timeout=30_000)
    page.get_by_role("searchbox", name="Search").fill("")
    page.get_by_label("Order").select_option("new")
    take(page, "learnt", message=True)
    open_label(page)
    page.get_by_role("link", name="More about this label").click()
    expect(page.locator(".weights")).to_be_visible()
    take(page, "label")
    phone = opened(browser, f"{url}#review", PHONE, has_touch=True, device_scale_factor=2)
    expect(phone.locator(SHOWN).first).to_be_focused()
    phone.locator("#results").evaluate("box => scrollTo(0, box.offsetTop - 330)")
    take(phone, "phone")


def draw_tree(browser: Browser, url: str) -> None:
    """The tree, with a branch open."""
    page = opened(browser, f"{url}#labels", DESKTOP, color_scheme="light")
    page.get_by_role("button", name="Tree").click()
    page.locator(f"#tree [data-id='{BRANCH}'] .twig").click()
    take(page, "tree")


def main() -> None:
    """Fit the runs, and take all pictures."""
    parser = argparse.ArgumentParser(description="Take the pictures of the page.")
    parser.add_argument("acts", type=Path, help="EURLEX57K")
    parser.add_argument("packages", type=Path, help="debtags")
    parser.add_argument("--out", type=Path, required=True, help="a folder for runs and the table")
    asked = parser.parse_args()
    rows = some(asked.acts, "dev", NEW)
    run = fitted(asked.acts, asked.out / "law")
    other = fitted(asked.packages, asked.out / "packages")
    table = written(rows, asked.out / "new-acts.xlsx")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with serving(run) as url:
            draw_day(browser, url, run, table, rows)
        with serving(other) as url:
            draw_tree(browser, url)
        browser.close()


if __name__ == "__main__":
    main()
