"""The training documents whose words are compared, with those of the feedback."""

from __future__ import annotations

from depl.run.folder import Run
from depl.run.learned import Learned
from depl.sparse.neighbours import WordNeighbours
from depl.sparse.renewal import Renewal
from depl.sparse.updating import with_documents


def word_neighbours(run: Run, learned: Learned | None = None) -> WordNeighbours:
    """Those of a run, as it was fitted or as it is after learning."""
    X, Y = run.train_vectors(), run.Y
    if learned is not None:
        X, Y = Renewal(run.idf(), learned.features).rows(X), learned.Y
        X = with_documents(X, Y.shape[0], learned.places, learned.rows)
    voting = run.settings("fusion")["neighbours"]
    k, sharpness = voting["k"], voting["sharpness"]
    return WordNeighbours(X, Y, k=k, sharpness=sharpness, n_threads=run.threads)
