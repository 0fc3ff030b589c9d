"""The demo corpus: what is in it, what must not be, and how See Also is read."""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import re
import subprocess
import sys
import warnings
from importlib import import_module
from types import SimpleNamespace

import pytest

from depl.core.errors import CorpusError
from depl.readers import demo_corpus
from depl.readers.demo_corpus import (
    in_words,
    label_name,
    read_docstrings,
    see_also,
    split_of,
    split_sections,
)

DIGEST = """
import hashlib, json
from depl.readers.demo_corpus import read_docstrings
data = read_docstrings()
labels = [(x.id, x.name, x.alt_names) for x in data.labels]
splits = [(k, c.ids, c.texts, c.Y.indptr.tolist(), c.Y.indices.tolist())
          for k, c in data.splits.items()]
digest = hashlib.sha256(json.dumps([labels, splits]).encode()).hexdigest()
"""


@pytest.fixture(scope="module")
def data():
    return read_docstrings()


@pytest.fixture(scope="module")
def documents(data):
    """Text and label ids by document id, over all splits."""
    return {
        document: (text, {data.labels[j].id for j in corpus.Y[[row]].indices})
        for corpus in data.splits.values()
        for row, (document, text) in enumerate(zip(corpus.ids, corpus.texts, strict=True))
    }


def find(full_name):
    """The object behind a full name, by importing as much of it as is a module."""
    parts = full_name.split(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thing = import_module(parts[0])
        for end in range(2, len(parts) + 1):
            if not hasattr(thing, parts[end - 1]):
                import_module(".".join(parts[:end]))
            thing = getattr(thing, parts[end - 1])
    return thing


# The corpus


def test_sizes_are_those_of_a_small_long_tailed_collection(data, documents):
    # 1,996 documents and 1,918 labels with numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1.
    assert 1700 <= len(documents) <= 2600
    assert 1900 <= len(data.labels) <= 2800
    counts = data.train.label_counts
    assert ((counts >= 1) & (counts <= 9)).sum() >= 0.85 * len(data.labels)
    assert (counts == 0).sum() <= 0.15 * len(data.labels)
    assert 2 <= sum(c.Y.nnz for c in data.splits.values()) / len(documents) <= 4


def test_splits_are_disjoint_complete_and_about_80_10_10(data, documents):
    assert data.name == "demo"
    assert set(data.splits) == {"train", "dev", "test"}
    ids = [i for corpus in data.splits.values() for i in corpus.ids]
    assert len(ids) == len(set(ids)) == len(documents)
    assert 0.77 < len(data.train) / len(ids) < 0.84
    assert 0.07 < len(data.dev) / len(ids) < 0.12
    assert 0.07 < len(data.test) / len(ids) < 0.12
    for split, corpus in data.splits.items():
        assert {split_of(i) for i in corpus.ids} == {split}
        assert corpus.ids == sorted(corpus.ids)


def test_every_label_is_used_and_every_document_has_one(data, documents):
    used = {label for _, labels in documents.values() for label in labels}
    assert used == set(data.labels.ids)
    assert all(labels for _, labels in documents.values())
    assert data.labels.ids == sorted(data.labels.ids)
    assert all(corpus.labels is data.labels for corpus in data.splits.values())


def test_no_document_carries_its_own_label(documents):
    assert [i for i, (_, labels) in documents.items() if i in labels] == []


def test_label_names_are_distinct(data):
    assert len(set(data.labels.names)) >= 0.99 * len(data.labels)


def test_texts_are_long_enough_and_each_occurs_once(documents):
    bodies = [" ".join(text.split("\n\n", 1)[1].split()) for text, _ in documents.values()]
    assert len(set(bodies)) == len(bodies)
    assert min(len(body.split()) for body in bodies) >= 20


TITLES = "Parameters|Other Parameters|Attributes|Methods|Returns|Yields|Raises|Warns|Warnings"
HIDDEN = re.compile(
    rf"^ *(?:See [Aa]lso|Examples?)\n *-{{3,}}\n.*?"
    rf"(?=^ *(?:{TITLES}|Notes?|References|See [Aa]lso|Examples?)\n *-{{3,}}\n|\Z)",
    re.MULTILINE | re.DOTALL,
)


def plain_lines(text):
    return {re.sub(r":[a-z:]+:`|[`~]", "", line).strip() for line in text.splitlines()}


def test_no_line_of_a_document_comes_from_see_also_or_examples(documents):
    sections_seen = 0
    for name, (text, _) in documents.items():
        docstring = inspect.cleandoc(find(name).__doc__)
        visible, hidden = HIDDEN.subn("\n", docstring)
        sections_seen += hidden
        assert plain_lines(text.split("\n\n", 1)[1]) <= plain_lines(visible) | {""}, name
        assert not re.search(r"(?im)^\s*(see also|examples?):?\s*$", text), name
    assert sections_seen >= 1.5 * len(documents)


def test_documents_open_with_their_own_name_in_words_and_not_with_their_call(documents):
    text = documents["scipy.special.ellipkinc"][0]
    assert text.startswith("ellipkinc\n\nIncomplete elliptic integral of the first kind\n")
    assert not any("casting='same_kind', order='K'" in text[:200] for text, _ in documents.values())


@pytest.mark.parametrize(
    ("document", "labels"),
    [
        ("numpy.flatnonzero", {"numpy.nonzero", "numpy.ravel"}),
        ("numpy.reshape", {"numpy.ndarray.reshape"}),
        ("numpy.imag", {"numpy.real", "numpy.angle", "numpy.real_if_close"}),
        ("numpy.linalg.inv", {"scipy.linalg.inv", "numpy.linalg.cond", "numpy.linalg.svd"}),
        ("scipy.sparse.linalg.eigsh", {"scipy.sparse.linalg.eigs", "scipy.sparse.linalg.svds"}),
        ("sklearn.cluster.KMeans", {"sklearn.cluster.MiniBatchKMeans"}),
        ("sklearn.decomposition.FactorAnalysis", {"sklearn.decomposition.PCA"}),
        ("numpy.random.gamma", {"scipy.stats.gamma", "numpy.random.Generator.gamma"}),
    ],
)
def test_well_known_pages_have_the_labels_their_authors_wrote(documents, document, labels):
    assert labels <= documents[document][1]


def test_names_are_public_and_as_short_as_they_come(data, documents):
    names = {*documents, *data.labels.ids}
    assert not [n for n in names if any(part.startswith("_") for part in n.split("."))]
    assert "numpy.linalg.norm" in names
    assert not any(n.startswith(("scipy.stats.distributions.", "numpy.core.")) for n in names)


def test_labels_are_named_in_words_and_keep_the_bare_name(data):
    label = data.labels[data.labels.index("sklearn.linear_model.LogisticRegression")]
    assert label.name == "logistic regression (sklearn linear model)"
    assert label.alt_names == ("LogisticRegression",)
    assert "abs" in data.labels[data.labels.index("numpy.absolute")].alt_names


def test_the_same_bytes_in_other_processes_with_other_hash_seeds_and_no_output():
    # Not compared with this process: scikit-learn shows more where its checks are imported.
    done = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", DIGEST + "print(digest)"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        for seed in ("1", "2")
    ]
    assert [x.stderr for x in done] == ["", ""]
    assert len(done[0].stdout.strip()) == 64
    assert done[0].stdout == done[1].stdout


def test_modules_that_cannot_be_imported_are_left_out_quietly(tmp_path, monkeypatch, caplog):
    package = tmp_path / "fragile_package"
    (package / "tests").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "tests" / "__init__.py").write_text("raise SystemExit")
    (package / "_private.py").write_text("raise SystemExit")
    (package / "broken.py").write_text("raise OSError('no such device')")
    (package / "whole.py").write_text("def f():\n    'Documented.'\n")
    monkeypatch.syspath_prepend(tmp_path)
    with caplog.at_level(logging.DEBUG, demo_corpus.__name__):
        modules = [m.__name__ for m in demo_corpus._public_modules("fragile_package")]
    assert modules == ["fragile_package", "fragile_package.whole"]
    assert "fragile_package.broken" in caplog.text


def test_python_without_docstrings_is_told_so(monkeypatch):
    monkeypatch.setattr(demo_corpus, "sys", SimpleNamespace(flags=SimpleNamespace(optimize=2)))
    with pytest.raises(CorpusError, match="-OO"):
        read_docstrings()


# Reading docstrings


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("ravel : Return a flat view.", ["ravel"]),
        ("ravel: Return a flat view.", ["ravel"]),
        ("ravel", ["ravel"]),
        ("ravel, flatten : Two of them.", ["ravel", "flatten"]),
        ("ravel, flatten,\nreshape", ["ravel", "flatten", "reshape"]),
        ("scipy.linalg.inv : From another package.", ["scipy.linalg.inv"]),
        ("ravel\n    Described below, unlike reshape.", ["ravel"]),
        ("ravel :\n    `reshape`, flatten : not these.\n\nsort", ["ravel", "sort"]),
        (":func:`ravel` : With a role.", ["ravel"]),
        (":func:`~numpy.ravel`, :meth:`ndarray.flat`", ["numpy.ravel", "ndarray.flat"]),
        (":py:class:`~sklearn.svm.SVC` : With a domain.", ["sklearn.svm.SVC"]),
        ("`ravel`, ``flatten`` : Quoted.", ["ravel", "flatten"]),
        ("ravel() : With brackets.", ["ravel"]),
        ("* ravel : In a list.\n* sort", ["ravel", "sort"]),
        ("Use `ravel` or :func:`sort` for flat arrays.", ["ravel", "sort"]),
        ("These functions are old and :ref:`gone <whatsnew>`.", []),
        ("", []),
    ],
)
def test_see_also_is_read_in_every_style(body, names):
    assert see_also(body) == names


def test_sections_end_only_where_a_known_title_is_underlined():
    docstring = """Sort things.

    More words.

    Parameters
    ----------
    a : array
        Things.

    See also
    --------
    argsort : Indirect.

    Examples
    --------
    >>> print(table)
    Name  Size
    ----------
    a     1

    Notes
    -----
    Stable.
    """
    assert split_sections(docstring) == [
        ("", "Sort things.\n\nMore words."),
        ("parameters", "a : array\n    Things."),
        ("see also", "argsort : Indirect."),
        ("examples", ">>> print(table)\nName  Size\n----------\na     1"),
        ("notes", "Stable."),
    ]


def test_see_also_is_a_title_even_when_not_underlined_or_indented_on_its_own():
    sections = split_sections("Sort.\n\nSee Also:\n    argsort : Indirect.\n    lexsort\n")
    assert sections == [("", "Sort."), ("see also", "argsort : Indirect.\nlexsort")]
    assert split_sections("") == [("", "")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ravel", "ravel"),
        ("real_if_close", "real if close"),
        ("LogisticRegression", "logistic regression"),
        ("MiniBatchKMeans", "mini batch k means"),
        ("LinearSVC", "linear SVC"),
        ("PCA", "PCA"),
        ("RBFInterpolator", "RBF interpolator"),
        ("Akima1DInterpolator", "akima 1D interpolator"),
        ("arctan2", "arctan2"),
    ],
)
def test_identifiers_are_split_into_words(name, words):
    assert in_words(name) == words


def test_label_names_put_the_thing_first_and_its_home_in_brackets():
    assert label_name("numpy.ravel") == "ravel (numpy)"
    assert label_name("scipy.sparse.linalg.eigsh") == "eigsh (scipy sparse linalg)"


def test_the_split_is_a_function_of_the_id_alone():
    for document in ("numpy.ravel", "numpy.sort", "sklearn.svm.SVC", "scipy.fft.fft"):
        last_digit = int(hashlib.sha256(document.encode()).hexdigest()[:8], 16) % 10
        expected = "train" if last_digit < 8 else ("dev", "test")[last_digit - 8]
        assert split_of(document) == expected
