"""The documentation: links lead somewhere, pages can be found, the API page is whole."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import depl

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
READ = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *PAGES]

FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1`*\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
INCLUDED = re.compile(r"^```\{(?:include|image|literalinclude)\}\s+(\S+)", re.MULTILINE)


def links(page: Path) -> list[str]:
    """What a page links to and shows within the repository."""
    text = page.read_text(encoding="utf-8")
    prose = FENCE.sub("", text)
    # A link's text may be code; a link inside code is none.
    prose = CODE.sub(lambda found: "" if "](" in found[0] else found[0], prose)
    found = LINK.findall(prose) + INCLUDED.findall(text)
    return [link for link in found if not re.match(r"[a-z][a-z0-9+.-]*:", link)]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Sphinx and code hosts make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", text, re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        same = sum(1 for anchor in found if re.fullmatch(rf"{re.escape(words)}(-\d+)?", anchor))
        found.add(f"{words}-{same}" if same else words)
    return found


def in_toctrees(page: Path) -> list[Path]:
    """The pages that a page's toctrees name, in order."""
    named = []
    for block in TOCTREE.findall(page.read_text(encoding="utf-8")):
        entries = [line for line in block.splitlines() if line and not line.startswith(":")]
        targets = [re.sub(r"^.*<(.+)>$", r"\1", entry) for entry in entries]
        named += [(page.parent / f"{target}.md").resolve() for target in targets]
    return named


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading_in_it(page: Path):
    broken = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        there = target.is_file() and target.is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_links_are_found_where_they_are_and_nowhere_else(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n[a](a.md) [`b`](b.md#c) ![d](d.png) [e](https://e.org) `[f](f.md)`\n"
        "```\n[h](h.md)\n```\n```{include} i.md\n```\n## It's `two`, 2\n# One\n",
        encoding="utf-8",
    )
    assert links(page) == ["a.md", "b.md#c", "d.png", "i.md"]
    assert anchors(page) == {"one", "its-two-2", "one-1"}


def test_every_page_is_in_one_toctree_and_every_toctree_leads_to_pages():
    named = [target for page in PAGES for target in in_toctrees(page)]
    # The home page is where they hang; it shows what README.md has for those who browse the code.
    expected = {page.resolve() for page in PAGES} - {DOCS / "index.md", DOCS / "README.md"}
    assert sorted(named) == sorted(expected)


def test_the_home_page_lists_every_page_of_its_toctrees():
    listed = {(DOCS / link).resolve() for link in links(DOCS / "README.md")}
    listed.discard(ROOT / "benchmarks" / "README.md")
    assert listed == set(in_toctrees(DOCS / "index.md")) - {DOCS / "benchmarks.md"}
    marker = re.search(r":start-after: (.+)", (DOCS / "index.md").read_text(encoding="utf-8"))
    assert marker
    assert marker[1] in (DOCS / "README.md").read_text(encoding="utf-8")


def test_the_api_page_describes_exactly_what_import_depl_offers():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    described = re.findall(r"^\.\. auto(?:class|function|exception):: depl\.(\w+)$", text, re.M)
    assert sorted(described) == depl.__all__
    summary = re.search(r"\.\. autosummary::\n\n((?:   \w+\n)+)", text)
    assert summary
    assert summary[1].split() == described


@pytest.mark.parametrize(
    "page", [*READ, *sorted((ROOT / "experiments").glob("*.py"))], ids=lambda page: page.name
)
def test_every_script_and_setting_file_that_is_named_exists(page: Path):
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"\b(?:experiments|benchmarks|configs)/[\w./-]*\w\.(?:py|toml|md)\b", text)
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_what_the_checklist_names_is_in_the_code():
    text = (ROOT / "docs" / "paper-checklist.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)`: `(\w+)`", text)
    assert len(named) > 20
    for path, name in named:
        code = (ROOT / "src" / "depl" / path).read_text(encoding="utf-8")
        assert re.search(rf"(?:class|def) {name}\b|\b(?:self\.)?{name} = ", code), (path, name)
