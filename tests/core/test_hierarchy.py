"""Broader and narrower labels, against what one gets by following every link by hand."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depl.core.corpus import Label, LabelSet
from depl.core.hierarchy import Hierarchy, links_back

LINKS = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), unique=True)
)


def reached(links: dict[str, list[str]], start: str) -> set[str]:
    """All that can be reached, by adding parents until nothing changes."""
    found = set(links.get(start, ()))
    while True:
        more = found | {parent for x in found for parent in links.get(x, ())}
        if more == found:
            return found - {start}
        found = more


@given(LINKS)
def test_ancestors_are_all_that_can_be_reached(links: dict[str, list[str]]):
    ids = sorted(links)
    tree = Hierarchy(ids, [links[x] for x in ids])
    known = {x: [parent for parent in links[x] if parent in links] for x in ids}
    for i, label_id in enumerate(ids):
        assert {ids[j] for j in tree.ancestors(i)} == reached(known, label_id)
        assert {ids[j] for j in tree.narrower[i]} == {x for x in ids if label_id in links[x]}


@given(LINKS)
def test_without_the_links_back_there_is_no_circle(links: dict[str, list[str]]):
    back = links_back(links)
    rest = {x: [p for p in parents if (x, p) not in back] for x, parents in links.items()}
    list(TopologicalSorter(rest).static_order())  # raises where there is a circle
    if back:
        with pytest.raises(CycleError):
            list(TopologicalSorter(links).static_order())


@given(LINKS, st.permutations("abcdef"), st.integers(1, 6))
def test_no_label_is_suggested_with_its_ancestor(
    links: dict[str, list[str]], order: list[str], k: int
):
    for label_id, parent in links_back(links):
        links[label_id].remove(parent)
    ids = sorted("abcdef")
    tree = Hierarchy(ids, [links.get(x, []) for x in ids])
    ranked = [ids.index(x) for x in order]
    kept = tree.without_ancestors(ranked, k)
    chosen = {ids[ranked[i]] for i in kept}
    assert kept == sorted(kept)
    assert len(kept) <= k
    assert not any(reached(links, x) & chosen for x in chosen)
    first = set(order[:k])
    assert {x for x in first if not any(x in reached(links, y) for y in first)} <= chosen


def test_a_label_set_names_what_is_above_and_below():
    labels = LabelSet(
        [
            Label("1", "drink", broader=("food",)),
            Label("2", "wine", broader=("1",)),
            Label("3", "beer", broader=("1",)),
        ]
    )
    assert [x.name for x in labels.narrower(0)] == ["wine", "beer"]
    assert [x.name for x in labels.broader(1)] == ["drink"]
    assert labels.broader(0) == [Label("food", "food")]  # which is no label itself
