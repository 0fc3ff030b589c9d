"""Labels of a loaded run: found by id or name, with all that the run knows about them."""

from __future__ import annotations

from dataclasses import dataclass

from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.readers.spellings import Codes
from depl.run.state import State


@dataclass(frozen=True)
class LabelCard:
    """All that a run knows about one label."""

    label: Label
    training_documents: int
    description: str
    keywords: list[tuple[str, float]]
    broader: list[Label]
    narrower: list[Label]

    @classmethod
    def of(cls, state: State, position: int) -> LabelCard:
        """The card of the label at this position."""
        return cls(
            state.labels[position],
            int(state.train_counts[position]),
            state.descriptions[position],
            state.keywords[position],
            state.labels.broader(position),
            state.labels.narrower(position),
        )


def find_label(state: State, query: str) -> int:
    """Position of the label with this id or, failing that, this name (case ignored)."""
    position = state.labels.get(query)
    if position >= 0 and position not in state.removed:
        return position
    wanted = query.casefold()
    there = [(i, x) for i, x in enumerate(state.labels) if i not in state.removed]
    same = [i for i, x in there if x.name.casefold() == wanted]
    if len(same) == 1:
        return same[0]
    if same:
        ids = ", ".join(state.labels[i].id for i in same[:5])
        raise CorpusError(f"{len(same)} labels are named {query!r}. Give the id: {ids}.")
    code = Codes(x.id for _, x in there).find(query)
    if code is not None:
        return state.labels.get(code)
    if query in state.removed.values():
        raise CorpusError(
            f"The label {query!r} was removed. `depl labels RUN history` tells when, and undo "
            f"brings it back if it was the last edit; its id can be added again."
        )
    similar = [x for _, x in there if wanted in x.name.casefold()][:5]
    hint = "; ".join(x.id if x.id == x.name else f"{x.id} ({x.name})" for x in similar)
    raise CorpusError(
        f"No label has the id or name {query!r}."
        + (
            f" Names that contain it: {hint}."
            if hint
            else " `depl labels RUN list --search TEXT` searches the names."
        )
    )
