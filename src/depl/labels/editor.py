"""Edits of a loaded run's labels: checked, computed, written to the journal, then applied.

Nothing is retrained. An added label is found by its names and description, and by its examples
(``depl.run.newcomers``); only a classification head, where it is the only part, cannot rank it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from scipy.sparse import csr_array

from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.labels.additions import (
    check_new,
    filled_in,
    warn_of_new_words,
    warn_of_silence,
    warn_of_strange_names,
)
from depl.labels.journal import Edit
from depl.labels.replay import Replay
from depl.run.folder import Run
from depl.run.state import State


class LabelEditor:
    """The labels of a loaded run, and their edits.

    Parameters
    ----------
    run : Run
        The folder whose journal is read and written.
    base : State
        The run as it was fitted.
    decided_by : str or None
        The only part whose ranking the run suggests; None where several are combined.
    train_vectors : function
        Gives the tf-idf of the training documents.
    """

    def __init__(
        self,
        run: Run,
        base: State,
        decided_by: str | None,
        train_vectors: Callable[[], csr_array],
    ) -> None:
        self._run = run
        self._base = base
        self._decided_by = decided_by
        self._writing = threading.Lock()  # one edit at a time in this process
        self._locked = False  # whether ``locked`` holds the journal
        self._applying = threading.Lock()  # whoever changes or reads the replay
        self._replay = Replay(
            run, base, train_vectors, lambda: self._locked or self._writing.locked()
        )
        self.refresh()

    def state(self) -> State:
        """The run with all edits in force."""
        state = self._replay.cached_state()
        if state is None:
            with self._applying:
                state = self._replay.state()
        return state

    def read(self) -> None:
        """Read now what adding labels needs of the run."""
        with self._applying:
            self._replay.read()

    def refresh(self) -> bool:
        """Apply what other processes have edited; whether there was anything. Never waits."""
        if not self._replay.journal.changed():
            return False
        with self._applying:
            return self._replay.catch_up()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from editing, so that edits during the block wait for nobody.

        Raises ``BusyError`` if another process does not finish its edit. The edits may come from
        another thread than the lock.
        """
        with self._hold():
            self._locked = True
            try:
                yield
            finally:
                self._locked = False

    @contextmanager
    def _hold(self) -> Iterator[None]:
        with self._writing, self._replay.journal.locked():
            yield

    def add(
        self,
        labels: Sequence[Label],
        descriptions: Mapping[str, str],
        examples: Mapping[str, Sequence[str]],
    ) -> None:
        """Append labels."""

        def content() -> dict[str, Any]:
            check_new(labels, descriptions, examples, self._replay.overlay.position)
            return {
                "labels": [
                    {"id": x.id, "name": x.name.strip(), "alt_names": list(x.alt_names)}
                    | ({"description": descriptions[x.id]} if x.id in descriptions else {})
                    | ({"broader": list(x.broader)} if x.broader else {})
                    | ({"examples": list(examples[x.id])} if examples.get(x.id) else {})
                    for x in labels
                ]
            }

        self._edit("add", content)
        by_name = [x for x in labels if not examples.get(x.id)]
        if self._decided_by is not None:
            self._warn_of_silence(labels, by_name)
        elif by_name and self._base.retriever is None:  # an encoder makes something of any name
            warn_of_strange_names(by_name, self._base.features)

    def describe(self, label_id: str, text: str) -> None:
        """Replace a label's description."""
        self._edit(
            "describe",
            lambda: {"id": self._known(label_id), "text": filled_in(text, "description")},
        )

    def rename(
        self, label_id: str, name: str | None = None, alt_names: Sequence[str] | None = None
    ) -> None:
        """Replace a label's name, all its other names, or both."""

        def content() -> dict[str, Any]:
            before = self._label(label_id).name
            new = before if name is None else filled_in(name, "name").strip()
            found: dict[str, Any] = {"id": label_id, "name": new, "before": before}
            if alt_names is not None:
                found["alt_names"] = [filled_in(x, "other name").strip() for x in alt_names]
            return found

        self._edit("rename", content)
        overlay = self._replay.overlay
        position = overlay.position[label_id]
        if position < len(self._base.labels) and self._base.retriever is None:
            warn_of_new_words(overlay.labels[position], self._base.features)

    def remove(self, label_id: str) -> None:
        """Never suggest a label again."""
        self._edit("remove", lambda: {"id": label_id, "before": self._label(label_id).name})

    def last(self) -> str | None:
        """What ``undo`` would take back; None if there is nothing."""
        standing = self._replay.standing
        return standing[-1][0].summary() if standing else None

    def undo(self) -> str:
        """Take back the last edit in force; returns which it was."""
        with self._alone(), self._applying:
            self._replay.catch_up()
            if not self._replay.standing:
                raise self._replay.journal.nothing_to_undo()
            undone = self._replay.standing[-1][0]
            self._replay.record("undo", {"of": undone.number})
        return undone.summary()

    def _edit(self, edit: Edit, content: Callable[[], dict[str, Any]]) -> None:
        """Record what is checked against all that others have edited meanwhile."""
        with self._alone(), self._applying:
            self._replay.catch_up()
            self._replay.record(edit, content())

    def _alone(self) -> AbstractContextManager[None]:
        return nullcontext() if self._locked else self._hold()

    def _known(self, label_id: str) -> str:
        overlay = self._replay.overlay
        if label_id not in overlay.position:
            gone = label_id in overlay.removed.values()
            raise CorpusError(
                f"The label {label_id!r} was removed. Add it again, or undo its removal."
                if gone
                else f"No label has the id {label_id!r}. `depl labels RUN list` lists all."
            )
        return label_id

    def _label(self, label_id: str) -> Label:
        overlay = self._replay.overlay
        return overlay.labels[overlay.position[self._known(label_id)]]

    def _warn_of_silence(self, labels: Sequence[Label], by_name: Sequence[Label]) -> None:
        """Warn where the only part that suggests cannot know an added label yet."""
        if self._decided_by not in ("svm", "neighbours", "classifier", "depl+c"):
            return
        needs_training = self._decided_by in ("classifier", "depl+c")
        remedy = "Fit the run again with them" if needs_training else "Add them with examples"
        if not self._replay.finished:
            remedy += f", or finish the run with `depl fit {self._run.path}`"
        silent = labels if needs_training else by_name
        warn_of_silence([x.id for x in silent], self._decided_by, remedy)
