"""The script that follows one document through a run."""

from __future__ import annotations

import re
import sys

import depl


def test_a_document_is_followed_through_every_stage(
    import_script, fitted_run, corpus_folder, dataset, monkeypatch, capsys
):
    dev = dataset.dev
    command = ["follow.py", str(fitted_run), str(corpus_folder), "--document", dev.ids[0]]
    monkeypatch.setattr(sys, "argv", command)
    import_script("follow").main()
    printed = capsys.readouterr().out
    carried = [dataset.labels[int(j)].name for j in dev.Y[[0]].indices]
    assert all(f"carries {name}: " in printed for name in carried)
    model = depl.Classifier.load(fitted_run)
    vector = model.features.transform([dev.texts[0]])
    words = re.findall(r"\w\w+", dev.texts[0])
    assert f"features: {len(words)} words, {vector.nnz} terms" in printed
    table = printed.split("tf-idf\n")[1].split("\n\n")[0].splitlines()
    assert float(table[0].split()[-1]) == round(float(vector.data.max()), 3)
    for stage in ("svm: label", "keywords of", "tokens: ", "untrained encoder: ", "fusion: label"):
        assert f"\n{stage}" in printed
