"""Refuses what a fusion cannot combine, and says what it was given and what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from depl.core.errors import DeplError
from depl.core.ranking import Ranking


def check_rankings(
    parts: Sequence[str], rankings: Mapping[str, Ranking], n_labels: int, n: int | None = None
) -> int:
    """Refuse rankings that are not those of the parts; returns how many documents they rank.

    Parameters
    ----------
    parts : sequence of str
        What the fusion was fitted on.
    rankings : mapping of str to Ranking
        What it is given.
    n_labels : int
        How many labels there are.
    n : int, optional
        How many documents there must be; None: as many as the first part ranks.
    """
    if set(rankings) != set(parts):
        raise DeplError(
            f"The fusion was fitted on the parts {', '.join(parts)}, but got "
            f"{', '.join(rankings) or 'none'}. Give exactly the rankings of its parts."
        )
    lengths = {x: len(rankings[x]) for x in parts}
    wanted = lengths[parts[0]] if n is None else n
    if any(length != wanted for length in lengths.values()):
        raise DeplError(
            f"The parts rank different numbers of documents: {lengths}, where {wanted} were "
            f"expected. Rank the same documents with every part."
        )
    highest = max(int(x.indices.max(initial=-1)) for x in rankings.values())
    if highest >= n_labels:
        raise DeplError(
            f"A ranking names the label position {highest}, but there are training counts of "
            f"{n_labels} labels only. Give the counts of the label set that was ranked."
        )
    return wanted


def checked_facts(
    facts: NDArray[np.float32] | None, n_labels: int, n_facts: int
) -> NDArray[np.float32]:
    """The facts about so many labels, if they are as many as the trees read."""
    found = np.empty((n_labels, 0), np.float32) if facts is None else facts
    if found.shape != (n_labels, n_facts):
        raise DeplError(
            f"The fusion was fitted with {n_facts} facts about each label and needs them as an "
            f"array of shape {(n_labels, n_facts)}, but got {found.shape}. Give those of the label "
            f"set."
        )
    return found
