"""Why a label is suggested for a text: its words, its parts, and similar training documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from depl.core.corpus import Label
from depl.core.display import html_table
from depl.core.errors import CorpusError
from depl.core.ranking import Ranking
from depl.evaluation.bands import BANDS, band_of
from depl.fusion.fusion import Fusion
from depl.model.rankings import depth, fused
from depl.model.reasons import AddedLabelReasons, Match, Share, Sum, WordReasons
from depl.model.similar import Neighbour, TrainingDocuments, nearest_documents
from depl.run.state import State


@dataclass(frozen=True, repr=False)
class Explanation:
    """The explanation of a label for a text.

    Parameters
    ----------
    label, training_documents, description
        The label, how many training documents carry it, its pseudo description.
    probability, rank : float, int or None
        As suggested, with ranks from 1; None where no part lists the label. A run without a
        fusion has no probabilities.
    parts : list of Share
        Score, rank and contribution by each part; of an added label, by its names, by its examples,
        by the labels that the SVM sees both in them and in the text, by the training documents that
        probably carry it and, where there is an encoder, by what its name and its examples mean.
    keywords : list of Match
        The label's keywords that are in the text, the largest contribution first.
    name_words : list of Match
        The words of its best-matching name that are in the text, with contributions to the cosine.
    svm : Sum or None
        The terms of the SVM's score; None for labels without training documents.
    neighbours : list of Neighbour
        The nearest training documents that carry the label; of an added one the nearest examples.
    broader, narrower : list of Label
        The labels directly above and below it.
    """

    label: Label
    training_documents: int
    description: str
    probability: float | None
    rank: int | None
    parts: list[Share]
    keywords: list[Match]
    name_words: list[Match]
    svm: Sum | None
    neighbours: list[Neighbour]
    broader: list[Label]
    narrower: list[Label]

    def __repr__(self) -> str:
        sure = "" if self.probability is None else f", probability {self.probability:.2f}"
        found = dict.fromkeys(match.term for match in (*self.keywords, *self.name_words))
        words = ", ".join(list(found)[:5]) or "none of its words is in the text"
        return f"Explanation({self.label.name}{sure}: {words})"

    def _repr_html_(self) -> str:
        keywords, name = (
            [(x.term, f"{x.weight:.2f}", f"{x.contribution:.3f}") for x in matches]
            for matches in (self.keywords, self.name_words)
        )
        parts = [
            (x.name, "-" if x.rank is None else x.rank, f"{x.contribution:.2f}") for x in self.parts
        ]
        similar = [(x.id, f"{x.similarity:.2f}", x.text) for x in self.neighbours]
        return (
            html_table(repr(self), ("keyword", "weight", "adds"), keywords)
            + html_table("Of its name", ("word", "weight", "adds"), name)
            + html_table("By part", ("part", "rank", "adds to the log-odds"), parts)
            + html_table("Similar training documents", ("id", "similarity", "text"), similar)
        )

    @property
    def band(self) -> str:
        """The name of the label's frequency band."""
        return BANDS[int(band_of(np.array([self.training_documents]))[0])].name

    def to_json(self) -> dict[str, Any]:
        """The object that ``depl explain --json`` prints and the service returns."""
        return {
            "label": {
                "id": self.label.id,
                "name": self.label.name,
                "training_documents": self.training_documents,
                "band": self.band,
                "alt_names": list(self.label.alt_names),
                "definition": self.label.description,
                "broader": [{"id": x.id, "name": x.name} for x in self.broader],
                "narrower": [{"id": x.id, "name": x.name} for x in self.narrower],
            },
            "probability": self.probability,
            "rank": self.rank,
            "description": self.description,
            "parts": [asdict(x) for x in self.parts],
            "keywords": [_as_json(x) for x in self.keywords],
            "name_words": [_as_json(x) for x in self.name_words],
            "svm": None if self.svm is None else asdict(self.svm),
            "neighbours": [asdict(x) | {"carries": True} for x in self.neighbours],
        }


def explain(
    state: State,
    fusion: Fusion | None,
    training: TrainingDocuments | None,
    text: str,
    which: Sequence[int] | int,
    *,
    neighbours: int,
) -> list[Explanation]:
    """Explain labels for one text: those at some positions, or a number of the best."""
    if not isinstance(text, str):
        raise CorpusError(f"explain takes one text; got {type(text).__name__}. Give a string.")
    vectors = state.encode([text])
    x = state.features.transform([text])
    if fusion is None:
        rankings = state.rank([text], depth(fusion), vectors)
        ranked = rankings["svm"]
    else:
        rankings, new = state.rank_apart([text], depth(fusion), vectors)
        most = sum(part.k for part in (*rankings.values(), *([] if new is None else [new])))
        ranked = fused(state, fusion, (rankings, new), most)
    if isinstance(which, int):
        positions = [int(i) for i in ranked.top(which).indices[0] if i >= 0]
    else:
        positions = list(which)
    known = WordReasons(state.features, state.names.names, state.names.owner, text, x)
    newcomer = None
    if state.newcomers is not None:
        newcomer = AddedLabelReasons(state.newcomers, text, x, vectors, rankings)
    found = []
    for position in positions:
        score, rank = _standing(ranked, position)
        is_new = newcomer is not None and newcomer.knows(position)
        words = newcomer.words if newcomer is not None and is_new else known
        keywords = words.matches(dict(state.keywords[position]))
        near = []
        if newcomer is not None and is_new:
            near = newcomer.examples(position)[:neighbours]
        elif training is not None and neighbours > 0:
            near = nearest_documents(state, training, x, vectors, position, neighbours)
        found.append(
            Explanation(
                label=state.labels[position],
                training_documents=int(state.train_counts[position]),
                description=state.descriptions[position],
                probability=None if fusion is None else score,
                rank=rank,
                parts=newcomer.shares(position)
                if newcomer is not None and is_new
                else _shares(state, fusion, rankings, position),
                keywords=keywords,
                name_words=words.name_matches(position),
                svm=None if is_new else words.svm_sum(state.svm, position, keywords),
                neighbours=near,
                broader=state.labels.broader(position),
                narrower=state.labels.narrower(position),
            )
        )
    return found


def matched_keywords(state: State, text: str, position: int) -> list[Match]:
    """The label's keywords that are in the text; the one that adds most to the score first."""
    x = state.features.transform([text])
    words = WordReasons(state.features, state.names.names, state.names.owner, text, x)
    return words.matches(dict(state.keywords[position]))


def _shares(
    state: State, fusion: Fusion | None, rankings: Mapping[str, Ranking], position: int
) -> list[Share]:
    said = {name: _standing(ranking, position) for name, ranking in rankings.items()}
    if fusion is None:
        given = {"svm": said["svm"][0] or 0.0}
    else:
        given = fusion.contributions(rankings, state.train_counts, 0, position, state.facts)
    return [Share(name, *said[name], given.get(name, 0.0)) for name in rankings]


def _standing(ranking: Ranking, position: int) -> tuple[float | None, int | None]:
    """Score and rank, from 1, of a label in the only row of a ranking."""
    found = ranking.place(0, position)
    return (None, None) if found is None else (found[0], found[1] + 1)


def _as_json(match: Match) -> dict[str, Any]:
    return asdict(match) | {"spans": [list(span) for span in match.spans]}
