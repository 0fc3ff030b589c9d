"""Runs on texts that are not in English."""

from __future__ import annotations

from pathlib import Path

import pytest

from depl.core.corpus import Corpus, Label, LabelSet
from depl.pipeline.fit import Event, fit
from depl.run.config import Config
from depl.sparse.languages import stop_words

LABELS = LabelSet([Label("w", "Wein"), Label("z", "Zoll"), Label("s", "Tierseuchen")])
TEXTS = {
    "w": [
        "Verordnung über das Abfüllen von Schaumwein in Flaschen",
        "Regeln für das Etikett von Wein mit einer Angabe der Rebsorte",
        "Ernte von Trauben in den Weinbergen an der Mosel",
    ],
    "z": [
        "Zollsätze auf die Einfuhr von Chemikalien mit Ursprung in Drittländern",
        "Aussetzung der Zölle auf die Einfuhr von Stahl",
        "Erstattung von Zöllen durch die Behörden der Mitgliedstaaten",
    ],
    "s": [
        "Maßnahmen gegen die Maul- und Klauenseuche bei Rindern",
        "Impfung gegen die Schweinepest in den Beständen",
        "Schutz gegen die Geflügelpest",
    ],
}


@pytest.fixture(scope="module")
def german() -> Corpus:
    rows = [(text, LABELS.index(label)) for label, texts in TEXTS.items() for text in texts]
    ids = [str(i) for i in range(len(rows))]
    return Corpus.from_rows(ids, [t for t, _ in rows], [[i] for _, i in rows], LABELS)


def keywords(corpus: Corpus, out: Path, *, stop_words: bool) -> set[str]:
    config = Config.load(
        {"features": {"min_df": 1}, "descriptions": {"stop_words": stop_words}, "threads": 1}
    )
    described = fit(corpus, out, config, until="descriptions").descriptions()
    return {term for row in described.keywords for term, _ in row}


def test_words_of_grammar_are_keywords_only_if_allowed(german: Corpus, tmp_path: Path):
    grammar = stop_words("de")
    assert not keywords(german, tmp_path, stop_words=False) & grammar
    # Of all words, this one tells animal diseases apart best: an SVM's weights are no excuse.
    assert "gegen" in keywords(german, tmp_path, stop_words=True) & grammar


def test_language_is_found_told_and_kept(german: Corpus, tmp_path: Path, caplog):
    told: list[Event] = []
    with caplog.at_level("INFO", "depl"):
        run = fit(german, tmp_path, until="features", observe=told.append)
    assert run.features().language_ == "de"
    assert [event.detail for event in told if event.stage == "features"][-1].startswith(
        "language de (detected), "
    )
    assert "features: done" in caplog.text
    assert "language de" in caplog.text
