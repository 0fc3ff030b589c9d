"""Broader and narrower labels: a vocabulary's hierarchy, in which a label may have several parents.

Whoever reads labels removes circles with ``links_back``; labels that are edited later could make
new ones, so nothing here relies on there being none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Hierarchy:
    """Which labels are broader and narrower than others, by their positions.

    Parameters
    ----------
    ids : sequence of str
        The ids of the labels.
    broader : sequence of sequences of str
        The ids of the labels that are directly broader than each. Ids of no label are ignored.

    Examples
    --------
    >>> tree = Hierarchy(["food", "drink", "wine"], [[], ["food"], ["drink"]])
    >>> tree.broader[2], tree.narrower[0], sorted(tree.ancestors(2))
    ([1], [1], [0, 1])
    """

    def __init__(self, ids: Sequence[str], broader: Sequence[Sequence[str]]) -> None:
        position = {label_id: i for i, label_id in enumerate(ids)}
        self.broader = [[position[x] for x in group if x in position] for group in broader]
        self.narrower: list[list[int]] = [[] for _ in ids]
        for i, group in enumerate(self.broader):
            for parent in group:
                self.narrower[parent].append(i)

    def ancestors(self, position: int) -> set[int]:
        """All labels that are broader than one, directly or not."""
        found: set[int] = set()
        todo = list(self.broader[position])
        while todo:
            parent = todo.pop()
            if parent not in found:
                found.add(parent)
                todo += self.broader[parent]
        return found - {position}

    def without_ancestors(self, ranked: Sequence[int], k: int) -> list[int]:
        """Which k of a document's labels to suggest so that none is broader than another.

        Of the first k, those that are broader than another one are left out. Their places go to
        the next labels that are neither broader nor narrower than one that stays: a label further
        down never costs a better one its place.

        Parameters
        ----------
        ranked : sequence of int
            Positions of labels, best first.
        k : int
            How many to suggest, at most.

        Returns
        -------
        list of int
            Places in ``ranked``, ascending.

        Examples
        --------
        >>> tree = Hierarchy(["drink", "wine", "oil"], [[], ["drink"], []])
        >>> tree.without_ancestors([0, 1, 2], k=2)
        [1, 2]
        """
        above = [self.ancestors(label) for label in ranked[:k]]
        covered: set[int] = set().union(*above)
        kept = [i for i, label in enumerate(ranked[:k]) if label not in covered]
        labels = {ranked[i] for i in kept}
        for i in range(k, len(ranked)):
            if len(kept) >= k:
                break
            own = self.ancestors(ranked[i])
            if ranked[i] not in covered and not own & labels:
                kept.append(i)
                labels.add(ranked[i])
                covered |= own
        return kept


def links_back(broader: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The links that close a circle, so that there is none without them.

    Examples
    --------
    >>> links_back({"wine": ["drink"], "drink": ["food", "wine"], "food": []})
    [('drink', 'wine')]
    """
    found: list[tuple[str, str]] = []
    open_, done = set(), set()
    for start in broader:
        if start in done:
            continue
        path = [(start, iter(broader[start]))]
        open_.add(start)
        while path:
            here, parents = path[-1]
            parent = next(parents, None)
            if parent is None:
                path.pop()
                open_.discard(here)
                done.add(here)
            elif parent in open_:
                found.append((here, parent))
            elif parent not in done and parent in broader:
                open_.add(parent)
                path.append((parent, iter(broader[parent])))
    return found
