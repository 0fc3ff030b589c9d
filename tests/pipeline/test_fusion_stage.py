"""What the fusion learns from: held-out documents, by parts that know no more than they will."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from depl.core.corpus import Corpus, Label, LabelSet
from depl.evaluation.metrics import Hits, precision_at_k
from depl.pipeline.fit import fit
from depl.pipeline.fusion import counts_of_all, held_out_counts, held_out_rankings
from depl.pipeline.work import Work
from depl.run.folder import Run


def rare_names(listed: bool) -> Corpus:
    """Documents of two common labels; every fifth has one more, which is on it alone and named."""
    rng = np.random.default_rng(0)
    words = ["grape cellar vineyard", "duty tariff quota"]
    rows, texts, names = [], [], ["wine", "customs"]
    for i in range(120):
        common = i % 2
        rows.append([common])
        text = " ".join(rng.permutation(words[common].split())[:2])
        if i % 5 == 0:
            names.append(f"subject{i}")
            rows[-1].append(len(names) - 1)
            text += f" subject{i}"
        texts.append(text)
    if listed:
        names += ["nobody", "carries", "these"]
    return Corpus.from_rows(
        [str(i) for i in range(120)], texts, rows, LabelSet([Label(x, x) for x in names])
    )


@pytest.mark.parametrize("listed", [False, True])
def test_labels_of_held_out_documents_alone_are_known_from_a_list_only(listed, tmp_path):
    run = Run.open(fit(rare_names(listed), tmp_path / "run").path)
    assert run.labels_are_listed == listed
    held_out, fold = run.slice.held_out, run.slice.fold[run.slice.held_out]
    by_name = held_out_rankings(Work(run, run.config(), tmp_path, tmp_path))["names"]
    known = held_out_counts(run) > 0
    rows = []
    for labels, f in zip(by_name.indices.tolist(), fold.tolist(), strict=True):
        kept = [j for j in labels if j >= 0 and (listed or known[f, j])]
        rows.append(kept + [-1] * (len(labels) - len(kept)))
    expected = 100 * precision_at_k(Hits.of(np.array(rows), run.Y[held_out]), 5)
    assert run.fusion().scores_["names"]["P@5"] == pytest.approx(expected)
    unknown = ~known[fold[:, None], np.maximum(by_name.indices, 0)] & (by_name.indices >= 0)
    assert unknown.any()  # or the test could not fail
    without = replace(by_name, indices=np.where(unknown, -1, by_name.indices))
    assert precision_at_k(Hits.of(without.indices, run.Y[held_out]), 5) < precision_at_k(
        Hits.of(by_name.indices, run.Y[held_out]), 5
    )


def test_counts_of_the_folds_are_taken_as_those_of_all_documents(tmp_path):
    run = Run.open(fit(rare_names(listed=True), tmp_path / "run").path)
    known = held_out_counts(run)
    expected = counts_of_all(run, known)
    assert run.slice.n_folds == 3
    for fold in range(3):
        rest = run.slice.rest(fold)
        assert len(rest) < 120  # or the test could not fail
        for now, then in zip(known[fold].tolist(), expected[fold].tolist(), strict=True):
            assert abs(then - now * 120 / len(rest)) <= 0.5
    assert ((expected > 0) == (known > 0)).all()
    assert expected[:, :2] == pytest.approx(np.full((3, 2), 60), abs=12)
