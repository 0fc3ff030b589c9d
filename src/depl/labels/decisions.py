"""What people decide about labels of documents, and which decisions are refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from depl.core.errors import CorpusError

Verdict = Literal["accepted", "rejected", "added"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Decision:
    """A person's verdict on one label of a document.

    Parameters
    ----------
    label : str
        The label's id.
    verdict : str
        "accepted" or "rejected", if the label was suggested; "added" if it was missing.
    probability : float or None
        With which the label was suggested.
    key : str
        An id that the client chooses, never used for another decision; by default a random one.
    """

    label: str
    verdict: Verdict
    probability: float | None = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class Entry:
    """A decision as it is stored.

    ``document`` is the document's id, ``opening`` the beginning of its text, ``run`` the version of
    the run that was used, and times are ISO 8601, UTC. ``undone`` is when it was undone, if it was.
    """

    number: int
    key: str
    time: str
    document: str
    opening: str
    source: str
    label: str
    verdict: Verdict
    probability: float | None
    by: str
    run: str
    undone: str | None = None
    undone_by: str | None = None


@dataclass
class DecidedDocument:
    """A document, and the labels that people decided it should and should not carry."""

    id: str
    text: str
    carried: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)


class Judged(NamedTuple):
    """What people decided about the suggestions for one document.

    Parameters
    ----------
    labels : set of str
        The labels that they accepted or rejected.
    completed : bool
        Whether one of these people adds missing labels, to this document or another.
    """

    labels: set[str]
    completed: bool


def check_decisions(text: str, decisions: Iterable[Decision]) -> None:
    """Refuse an empty text, and decisions about it that are invalid, contradictory or missing."""
    if not text.strip():
        raise CorpusError("The document is empty. Nothing was kept; give its text.")
    known: set[str] = set()
    for decision in decisions:
        if decision.verdict not in VERDICTS:
            raise CorpusError(
                f"A decision is one of {', '.join(VERDICTS)}; got {decision.verdict!r}."
            )
        check_encodable(decision.label, decision.key)
        if decision.label in known:
            raise CorpusError(f"There are two decisions about the label {decision.label!r}.")
        known.add(decision.label)
    if not known:
        raise CorpusError("There is no decision. Accept, reject or add at least one label.")


def check_encodable(*texts: str) -> None:
    """Refuse texts that UTF-8 cannot represent."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise CorpusError(
                f"There is half of a surrogate pair in {text!r:.60}. Nothing was kept."
            ) from None
