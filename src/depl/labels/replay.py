"""From a run's journal to the run as edited: every entry is computed once, and applied in order."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping, Sequence

from scipy.sparse import csr_array

from depl.core import storage
from depl.core.errors import RunError
from depl.fusion.newcomers import NewcomerModel
from depl.labels.computed import LAYOUT, Computed, decoded
from depl.labels.fewshot import LabelMaker
from depl.labels.journal import Edit, Entry, Journal, in_force
from depl.labels.overlay import Overlay, Revert
from depl.labels.simulation import simulate_newcomers
from depl.run.folder import Run
from depl.run.state import State

_log = logging.getLogger(__name__)


class Replay:
    """What the entries of a journal make of a run. It is used by one thread at a time.

    Parameters
    ----------
    run : Run
        The folder whose journal is read and written.
    base : State
        The run as it was fitted.
    train_vectors : function
        Gives the tf-idf of the training documents.
    is_held : function
        Whether this process holds the journal's lock.
    """

    def __init__(
        self,
        run: Run,
        base: State,
        train_vectors: Callable[[], csr_array],
        is_held: Callable[[], bool],
    ) -> None:
        self._run = run
        self._base = base
        self._maker = LabelMaker(run, base, train_vectors, self.model)
        self._is_held = is_held
        self.journal = Journal(run.path)
        stages = run.manifest()["stages"]
        self.finished = "fusion" in stages
        rests_on = ["descriptions", *(["index"] if base.retriever is not None else [])]
        rests_on += ["fusion"] if self.finished else []  # which says what documents are likely
        made_from = {name: stages[name]["fingerprint"] for name in rests_on}
        learned = run.learned.current()
        if learned:
            made_from["learned"] = str(learned)
        self._made_from = storage.fingerprint(made_from, LAYOUT)
        self._newcomer_model: NewcomerModel | None = None
        self.overlay = Overlay(base, self.model)
        self.standing: list[tuple[Entry, Revert]] = []  # edits in force, and what undoes each
        self._state: State | None = base

    def cached_state(self) -> State | None:
        """The run with all edits in force; None where it is yet to be made."""
        return self._state

    def state(self) -> State:
        """The run with all edits in force."""
        if self._state is None:
            self._state = self.overlay.state()
        return self._state

    def model(self) -> NewcomerModel | None:
        """What makes added labels probable; None where a single part ranks."""
        if self._newcomer_model is None and self.finished:
            # A run of an earlier version does without until now.
            self._newcomer_model = self._run.newcomer_model() or simulate_newcomers(self._run)
        return self._newcomer_model

    def read(self) -> None:
        """Read now what added labels are compared with."""
        if self.finished:
            self._maker.read()

    def record(self, edit: Edit, content: Mapping[str, object]) -> None:
        """Compute, write, apply a new entry: in this order, so that an error changes nothing."""
        entry, line = self.journal.draft(edit, content)
        computed = self._compute(entry)
        self.journal.computed.append(entry.number, self._key(entry), computed)
        self.journal.append(entry, line)
        self._apply(entry, computed)

    # Reading the journal

    def catch_up(self) -> bool:
        """Apply entries that were written since; whether there were any."""
        from_start, entries = self.journal.read_on()
        if not entries and not self.standing:
            return False
        try:
            if from_start:
                self._replay(entries)
            elif not self._apply_all(entries):
                self._replay(self.journal.entries())
        except Exception:
            self.journal.rewind()  # nothing that was read counts
            raise
        return from_start or bool(entries)

    def _apply_all(self, entries: Sequence[Entry]) -> bool:
        """Apply entries that follow; False where one undoes another than the last edit."""
        kept = self.journal.computed.read_on()
        for entry in entries:
            if entry.edit != "undo":
                self._check_fits(entry)
            elif not self.standing or entry.content["of"] != self.standing[-1][0].number:
                return False
            self._apply(entry, self._kept(entry, kept) or self._compute(entry))
        return True

    def _replay(self, entries: Sequence[Entry]) -> None:
        """Apply all entries to the run as it was fitted."""
        before = self.overlay, self.standing
        self.overlay, self.standing = Overlay(self._base, self.model), []
        self.journal.computed.rewind()
        kept, lines = self.journal.computed.read_on(), {}
        standing = {entry.number for entry in in_force(entries)}
        complete, collecting = True, gc.isenabled()
        gc.disable()  # nothing here is garbage, and looking for it takes a third of the time
        try:
            for entry in entries:
                computed = None
                if entry.number in standing:
                    self._check_fits(entry)
                    computed = self._kept(entry, kept)
                    if computed is None:
                        computed = self._compute(entry)
                        complete = complete and computed is None
                    self._apply(entry, computed)
                elif entry.edit == "add":
                    self.overlay.add_tombstones(entry.labels(), entry.number)
                lines[entry.number] = self._key(entry), computed
        except Exception:
            self.overlay, self.standing = before
            raise
        finally:
            if collecting:
                gc.enable()
        self._state = None
        if not complete:
            self._keep(lines)

    def _check_fits(self, entry: Entry) -> None:
        """Refuse an entry about labels as they were before the run was fitted again."""
        known = self.overlay.position
        if entry.edit == "add":
            wrong = [x.id for x in entry.labels() if x.id in known]
            trouble = "which the run has anyway"
        else:
            wrong = [entry.content["id"]] if entry.content["id"] not in known else []
            trouble = "which the run does not have"
        if wrong:
            raise RunError(
                f"{self.journal.path}:{entry.number} ({entry.summary()}) is about the label "
                f"{wrong[0]!r}, {trouble}: it was fitted on other labels since. Take the edits "
                f"back with `depl labels {self._run.path} undo`, the last first, or move the "
                f"folder {self.journal.folder} away to do without all of them."
            )

    def _apply(self, entry: Entry, computed: Computed | None) -> None:
        overlay, content = self.overlay, entry.content
        self._state = None
        if entry.edit == "undo":
            self.standing.pop()[1]()
            return
        if entry.edit == "add":
            assert computed is not None
            written = ["description" in x for x in content["labels"]]
            examples = [x.get("examples", []) for x in content["labels"]]
            revert = overlay.add(entry.labels(), written, computed, examples, entry.number)
        else:
            position = overlay.position[content["id"]]
            if computed is None:
                revert = overlay.remove(position, entry.number)
            elif entry.edit == "describe":
                revert = overlay.describe(position, computed)
            else:
                renamed = entry.renamed(overlay.labels[position])
                revert = overlay.rename(position, renamed, computed)
        self.standing.append((entry, revert))

    # What is computed for an entry, and kept

    def _compute(self, entry: Entry) -> Computed | None:
        content, overlay = entry.content, self.overlay
        if entry.edit == "add":
            texts = [x.get("description") for x in content["labels"]]
            examples = [x.get("examples", []) for x in content["labels"]]
            return self._maker.make(entry.labels(), texts, examples, added=True)
        if entry.edit in ("remove", "undo"):
            return None
        position = overlay.position[content["id"]]
        label = overlay.labels[position]
        if entry.edit == "describe":
            return self._maker.make([label], [content["text"]], [[]])
        label = entry.renamed(label)
        if position in overlay.written:
            return self._maker.make([label], [overlay.descriptions[position]], [[]])
        return self._maker.make([label], [None], [[]], keywords=overlay.keywords[position])

    def _kept(self, entry: Entry, kept: Mapping[int, tuple[str, bytes]]) -> Computed | None:
        """What was computed for an entry, where it was kept and the run not fitted since."""
        key, content = kept.get(entry.number, ("", b""))
        return decoded(content) if key == self._key(entry) else None

    def _key(self, entry: Entry) -> str:
        return f"{self._made_from}-{entry.digest}"

    def _keep(self, lines: Mapping[int, tuple[str, Computed | None]]) -> None:
        """Write what was computed again; without it loading takes longer, and works."""
        try:
            if self._is_held():
                self.journal.computed.replace(lines)
            else:
                with self.journal.locked(wait=0):
                    self.journal.computed.replace(lines)
        except RunError as error:  # a read-only run, or one that is being edited
            _log.info("%s", error)
