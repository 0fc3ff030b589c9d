"""The neural rankings against dense scores."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from depl.core.ranking import Ranking
from depl.neural.encoder import encode
from depl.neural.encoder_files import load_encoder
from depl.neural.retriever import (
    Retriever,
    TextRetriever,
    index_documents,
    index_labels,
    joint_ranking,
)
from depl.neural.tokens import tokenize


@pytest.fixture(scope="module")
def tokens(toy, tiny_folder):
    return tokenize(toy.texts, tiny_folder, 24), tokenize(toy.names, tiny_folder, 8)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_every_part_ranks_by_its_own_scores(tiny_folder, toy, tokens, similarity):
    encoder = load_encoder(tiny_folder, n_labels=toy.n_labels, similarity=similarity)
    documents, labels = tokens
    short = tokenize([name.split()[0] for name in toy.names], tiny_folder, 8)
    retriever = Retriever(
        encoder,
        index_labels(encoder, labels),
        index_documents(encoder, documents),
        toy.Y,
        names=index_labels(encoder, short),
        neighbours=1,
        sharpness=20.0,
    )
    vectors = encode(encoder, documents, "document")
    found = retriever.rank(vectors, 4)
    with torch.inference_mode():
        phi = encode(encoder, labels, "label")
        dual, dense = encoder.similarity(vectors, phi), encoder.head(vectors)
        by_name = encoder.similarity(vectors, encode(encoder, short, "label"))
    assert list(found) == ["classifier", "retrieval", "name retrieval", "neighbours"]
    for name, scores in (("classifier", dense), ("retrieval", dual), ("name retrieval", by_name)):
        expected = Ranking.from_scores(scores.numpy(), 4)
        np.testing.assert_allclose(found[name].scores, expected.scores, atol=1e-4)
        of_found = np.take_along_axis(scores.numpy(), found[name].indices.astype(np.int64), 1)
        np.testing.assert_allclose(of_found, expected.scores, atol=1e-4)
    # The nearest training document of a training document is the document itself.
    for i, row in enumerate(toy.Y):
        carried = found["neighbours"].indices[i]
        assert set(carried[carried >= 0].tolist()) == set(row.indices[:4].tolist())
    mean = (torch.sigmoid(dual) + torch.sigmoid(dense)) / 2
    joint = joint_ranking(encoder, vectors, phi, 4)
    np.testing.assert_allclose(joint.scores, Ranking.from_scores(mean.numpy(), 4).scores, atol=1e-5)


def test_labels_that_both_branches_are_sure_of_are_still_ranked(tiny_folder, toy, tokens):
    encoder = load_encoder(tiny_folder, n_labels=toy.n_labels, similarity="dot")
    vectors = encode(encoder, tokens[0], "document")[:1]
    direction = vectors / vectors.norm() ** 2
    labels = direction * torch.arange(20.0, 28.0)[:, None]  # logits 20 to 27: all 1 in float32
    with torch.no_grad():
        encoder.head.weight.copy_(direction * 30)
        encoder.head.bias.zero_()
    ranking = joint_ranking(encoder, vectors, labels, 8)
    assert ranking.indices[0].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    assert ranking.scores[0].tolist() == [1.0] * 8


def test_without_a_head_and_names_there_are_no_such_parts(tiny_folder, toy, tokens):
    encoder = load_encoder(tiny_folder)
    retriever = Retriever(
        encoder,
        index_labels(encoder, tokens[1]),
        index_documents(encoder, tokens[0]),
        toy.Y,
        neighbours=3,
        sharpness=20.0,
    )
    assert set(retriever.rank(encode(encoder, tokens[0], "document"), 2)) == {
        "retrieval",
        "neighbours",
    }


def test_the_tokenizer_is_read_once(tiny_folder, toy, tokens, tmp_path):
    encoder = load_encoder(tiny_folder, n_labels=toy.n_labels)
    folder = Path(shutil.copytree(tiny_folder, tmp_path / "encoder"))
    documents, labels = tokens
    parts = index_labels(encoder, labels), index_documents(encoder, documents)
    ranks = Retriever(encoder, *parts, toy.Y, neighbours=1, sharpness=20.0)
    retriever = TextRetriever(ranks, folder, 24)
    (folder / "tokenizer.json").unlink()  # as a new fit does, for a moment
    expected = encode(encoder, documents, "document")
    torch.testing.assert_close(retriever.encode(toy.texts), expected)
