"""What the fusion learns from feedback: see ``depl.fusion.updating``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from depl.core.corpus import Corpus
from depl.core.errors import RunError
from depl.core.hashes import text_digest
from depl.core.texts import title_of
from depl.fusion.fusion import Fusion
from depl.fusion.updating import Foreseen, updated
from depl.labels.encoded import EncodedTexts
from depl.labels.feedback import FeedbackStore
from depl.pipeline.news import News
from depl.run.folder import Run
from depl.run.learned import Documents, Learned
from depl.run.neighbours import word_neighbours
from depl.run.state import State
from depl.run.titles import Titles, read_titles
from depl.sparse.neighbours import WORD_NEIGHBOURS

if TYPE_CHECKING:
    from depl.neural.retriever import Vectors


def suggesting(run: Run, before: Learned, texts: Sequence[str]) -> State | None:
    """What suggested labels until now, where a fusion learns and there is an encoder.

    What the encoder made of these texts, it knows already, as far as that was kept.
    """
    if before.fusion is None or not run.has("index"):
        return None
    try:
        state = State.load(run, before.fusion.parts_)
    except RunError:  # a part is damaged
        return None
    if state.retriever is not None:
        digests = [text_digest(text) for new in texts for text in (new, title_of(new))]
        state.retriever.latest.learn(EncodedTexts(run).read(digests))
    return state


def foreseen(
    run: Run,
    corpus: Corpus,
    before: Learned,
    studied: Documents,
    news: News,
    fresh: csr_array,
    by_characters: csr_array | None,
    state: State | None,
    vectors: Vectors | None,
) -> Foreseen | None:
    """What was suggested for all new documents before they were learnt from.

    Parameters
    ----------
    run, corpus, before, studied, news
        The run, all documents, what was known before, from which documents, and what is new.
    fresh : csr_array
        The vectors of texts that were not read before, by the tf-idf from before.
    by_characters : csr_array or None
        Those of all documents by sequences of characters.
    state, vectors : State and tensor, or None
        With an encoder, what suggested labels, and its vectors of the texts that were not read
        before.
    """
    fusion = before.fusion
    if fusion is None:
        return None
    known = studied.foreseen or Foreseen.none(fusion)
    unread = np.array(news.texts(corpus, studied).unread, np.int64)
    new = np.isin(unread, news.appended)
    places, depth = unread[new], fusion.depth_
    texts = [corpus.texts[i] for i in places]
    if not run.has("index"):  # no encoder, so that all is here
        X = csr_array(fresh[new])
        rankings = {
            "svm": before.svm.rank(X, depth),
            **before.names.parts(texts, X, before.features, depth),
        }
        if WORD_NEIGHBOURS in fusion.parts_:
            rankings[WORD_NEIGHBOURS] = word_neighbours(run, before).rank(X, depth)
        if before.characters is not None and by_characters is not None:
            Z = csr_array(by_characters[places])
            rankings["characters"] = before.characters.rank_vectors(Z, depth)
        if read_titles(fusion.parts_):
            titles = Titles.of(texts)
            words = titles.by_words(before.features, before.svm, before.names, depth)
            rankings |= titles.parts(words)
    elif state is None or vectors is None:
        return known
    else:
        rankings = state.rank(texts, depth, vectors[np.flatnonzero(new)])
    ids, Y = [corpus.ids[i] for i in places], csr_array(corpus.Y[places])
    later = Foreseen.of(fusion, rankings, before.train_counts, ids, Y, run.label_facts())
    had = {id: said.digest for id, said in studied.verdicts.items()}
    same = {id for id, said in news.verdicts.items() if had.get(id, said.digest) == said.digest}
    return known.then(later, same)


def fused(run: Run, studied: Documents) -> Fusion | None:
    """The fusion with what people said of suggestions; None where the run has none."""
    if studied.foreseen is None:
        return None
    said = FeedbackStore(run.path).judged()
    judged = {id: {run.labels.get(x) for x in known.labels} - {-1} for id, known in said.items()}
    completed = {id for id, known in said.items() if known.completed}
    carried = {id: said.carried for id, said in studied.verdicts.items()}
    n_fitted, n_train = len(run.slice.held_out), run.train_counts()[1]
    fusion = run.fitted_fusion()
    return updated(fusion, n_fitted, n_train, studied.foreseen, judged, completed, carried)
