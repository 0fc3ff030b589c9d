"""Feedback on a model's suggestions: from labels as people name them to what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from depl.core.corpus import Corpus
from depl.core.hashes import text_digest
from depl.core.texts import title_of
from depl.labels.decisions import Decision, Entry, Verdict
from depl.labels.encoded import EncodedTexts
from depl.labels.feedback import FeedbackStore
from depl.labels.feedback_corpus import Taught, taught

if TYPE_CHECKING:
    from depl.model.classifier import Classifier

_DEPTH = 100  # suggestions among which a label's probability is looked up


class Feedback:
    """What people decided about the suggestions of one model; ``Classifier.feedback`` gives it.

    Parameters
    ----------
    model : Classifier
        Whose suggestions they are.
    store : FeedbackStore
        Where decisions are kept, and their history read.
    encoded : EncodedTexts or None
        Where what the encoder made of the documents is kept, if there is one.
    """

    def __init__(
        self, model: Classifier, store: FeedbackStore, encoded: EncodedTexts | None = None
    ) -> None:
        self._model = model
        self.store = store
        self._encoded = encoded

    def add(
        self,
        text: str,
        *,
        accepted: Sequence[str] = (),
        rejected: Sequence[str] = (),
        added: Sequence[str] = (),
        id: str | None = None,
        source: str = "",
        by: str = "",
        key: str | None = None,
    ) -> list[Entry]:
        """Keep what somebody decided about one document, all or nothing.

        Parameters
        ----------
        text : str
            The document.
        accepted, rejected, added : sequences of str
            Labels, by id or name: suggestions that are right, suggestions that are wrong, and
            labels that were not suggested and should have been.
        id : str, optional
            The document's id; by default one that is made from its text.
        source, by : str
            Where the document comes from, and who decided.
        key : str, optional
            Makes the call safe to repeat: with a key that was used before nothing is kept twice.
        """
        ranking = self._model.predict([text], _DEPTH)
        pairs = zip(ranking.indices[0].tolist(), ranking.scores[0].tolist(), strict=True)
        suggested = {place: p for place, p in pairs if place >= 0}

        def decided(query: str, verdict: Verdict) -> Decision:
            place = self._model.find(query)
            label = self._model.labels[place].id
            own = {} if key is None else {"key": f"{key}/{label}"}
            return Decision(label, verdict, suggested.get(place), **own)

        lists: dict[Verdict, Sequence[str]] = {
            "accepted": accepted,
            "rejected": rejected,
            "added": added,
        }
        decisions = [decided(x, verdict) for verdict, some in lists.items() for x in some]
        return self.keep(text, decisions, id=id, source=source, by=by)

    def keep(
        self,
        text: str,
        decisions: Sequence[Decision],
        *,
        id: str | None = None,
        source: str = "",
        by: str = "",
    ) -> list[Entry]:
        """``FeedbackStore.add``; where the text has just been encoded, that is kept with it."""
        entries = self.store.add(text, decisions, id=id, source=source, by=by)
        retriever = self._model.state.retriever
        if retriever is not None and self._encoded is not None:
            digests = map(text_digest, (text, title_of(text)))
            self._encoded.keep(retriever.latest.known(digests))
        return entries

    def undo(self, number: int, *, by: str = "") -> Entry:
        """Let the decision with this number count no longer."""
        return self.store.undo(number, by=by)

    def history(self, *, document: str | None = None, label: str | None = None) -> list[Entry]:
        """All decisions, or those about one document or label; the latest first."""
        found = None if label is None else self._model.labels[self._model.find(label)].id
        return self.store.history(document=document, label=found)

    def corpus(self, base: Corpus | None = None) -> Taught:
        """The documents with the labels that people gave them.

        Parameters
        ----------
        base : Corpus, optional
            Documents, such as the training documents, to which they are added. A document that is
            in both keeps its labels except those that were rejected.
        """
        return taught(self.store.documents(), self._model.labels, base)
