"""Label search: exact against a full sort, approximate against exact."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from depl.core.errors import MissingExtraError, RunError
from depl.neural.graphs import Graphs
from depl.neural.index import LabelIndex, recall

small_numbers = st.integers(-3, 3).map(float)  # exact in float32 however they are summed; many ties


@st.composite
def searches(draw):
    size = draw(st.integers(1, 4))
    vectors = draw(arrays(np.float32, (draw(st.integers(0, 14)), size), elements=small_numbers))
    queries = draw(arrays(np.float32, (draw(st.integers(0, 7)), size), elements=small_numbers))
    return vectors, queries, draw(st.integers(0, 9))


def full_sort(vectors, queries, k, scale=1.0, bias=0.0):
    """Brute force: all scores, sorted, equal ones by position."""
    scores = scale * (queries.astype(np.float64) @ vectors.T.astype(np.float64)) + bias
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    indices = np.full((len(queries), k), -1)
    best = np.full((len(queries), k), -np.inf)
    indices[:, : order.shape[1]] = order
    best[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    return indices, best


@given(
    searches(), st.integers(1, 5), st.integers(1, 6), st.sampled_from([(1, 0), (2, -3), (0.5, 8)])
)
def test_exact_search_is_a_full_sort_whatever_the_blocks(search, documents, labels, line):
    vectors, queries, k = search
    scale, bias = line
    found = LabelIndex.build(vectors).search(
        queries, k, scale=scale, bias=bias, documents=documents, labels=labels
    )
    indices, scores = full_sort(vectors, queries, k, scale, bias)
    assert (found.indices == indices).all()
    assert (found.scores == scores).all()
    assert (found.indices.dtype, found.scores.dtype) == (np.int32, np.float32)


def unit_vectors(rng, *shape):
    vectors = rng.normal(size=shape)
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("blocks", [(1, 1), (3, 100), (50, 7), (512, 16_384)])
def test_real_vectors_are_ranked_alike_in_blocks_of_any_size(rng, blocks):
    vectors, queries = unit_vectors(rng, 500, 16), unit_vectors(rng, 40, 16)
    found = LabelIndex.build(vectors).search(queries, 10, documents=blocks[0], labels=blocks[1])
    indices, scores = full_sort(vectors, queries, 10)
    assert (found.indices == indices).all()
    assert found.scores == pytest.approx(scores, abs=1e-6)


def test_labels_in_rising_order_are_found_too(rng):
    # The worst case of a running top k: every block pushes out all of the one before.
    vectors = np.linspace(-1, 1, 300)[:, None]
    found = LabelIndex.build(vectors).search(np.ones((4, 1)), 5, labels=20)
    assert found.indices.tolist() == [[299, 298, 297, 296, 295]] * 4


def test_memory_follows_the_blocks_and_not_documents_times_labels(rng):
    vectors, queries = unit_vectors(rng, 4_000, 8), unit_vectors(rng, 2_000, 8)
    index = LabelIndex.build(vectors)
    tracemalloc.start()
    index.search(queries, 5, documents=50, labels=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000 * 4_000 * 4 / 20


def test_the_order_is_a_function_of_the_scores_that_are_given(rng):
    # With a large offset, scores that differ are rounded to equal ones: position decides then.
    vectors, queries = unit_vectors(rng, 200, 4), unit_vectors(rng, 20, 4)
    found = LabelIndex.build(vectors).search(queries, 50, bias=1e6)
    tied = np.diff(found.scores) == 0
    assert tied.any()
    assert (np.diff(found.indices)[tied] > 0).all()


def test_a_query_that_is_not_a_number_finds_nothing(rng):
    found = LabelIndex.build(unit_vectors(rng, 9, 4)).search(np.full((1, 4), np.nan), 3)
    assert (found.indices == -1).all()


@pytest.mark.parametrize("bad", [np.zeros(3), np.array([[1.0, np.nan]]), np.array([[np.inf]])])
def test_label_vectors_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="finite"):
        LabelIndex.build(bad)


def test_queries_and_scales_that_make_no_sense_are_refused(rng):
    index = LabelIndex.build(unit_vectors(rng, 5, 4))
    with pytest.raises(ValueError, match=r"\(n, 4\)"):
        index.search(np.zeros((2, 3)), 1)
    with pytest.raises(ValueError, match="positive"):
        index.search(np.zeros((2, 4)), 1, scale=0.0)


def test_an_index_is_made_without_torch_and_faiss():
    script = (
        "import sys, numpy; sys.modules['torch'] = sys.modules['faiss'] = None\n"
        "from depl.neural.index import LabelIndex\n"
        "print(len(LabelIndex.build(numpy.eye(3))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "3"


def test_an_exact_index_comes_back_from_disk(rng, tmp_path):
    vectors, queries = unit_vectors(rng, 30, 4), unit_vectors(rng, 5, 4)
    index = LabelIndex.build(vectors)
    index.save(tmp_path / "index")
    loaded = LabelIndex.load(tmp_path / "index")
    assert len(loaded) == 30
    assert not loaded.approximate
    assert (loaded.vectors == vectors).all()
    assert (loaded.search(queries, 3).indices == index.search(queries, 3).indices).all()


def test_a_missing_faiss_is_named_with_its_extra(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"faiss-cpu.*depl\[faiss\]"):
        LabelIndex.build(unit_vectors(rng, 9, 4), approximate=True)


# With faiss


@pytest.fixture(scope="module")
def pair():
    """The same labels searched exactly and approximately, with queries that lie among them."""
    pytest.importorskip("faiss", reason="approximate search needs the extra depl[faiss]")
    rng = np.random.default_rng(5)
    vectors = unit_vectors(rng, 3_000, 24)
    near = vectors[rng.choice(3_000, 100)] + 0.2 * unit_vectors(rng, 100, 24)
    return LabelIndex.build(vectors), LabelIndex.build(vectors, approximate=True), near


def test_approximate_search_finds_nearly_all_and_scores_them_alike(pair):
    exact, approximate, queries = pair
    assert approximate.approximate
    assert 0.98 < recall(approximate, exact, queries, 10) <= 1.0
    found = approximate.search(queries, 10, scale=3.0, bias=-1.0, documents=33)
    dots = np.einsum("nd,nkd->nk", queries, exact.vectors[found.indices])
    assert found.scores == pytest.approx(3 * dots - 1, abs=1e-5)
    assert (np.diff(found.scores) <= 0).all()
    assert found.indices.dtype == np.int32


def test_recall_is_the_share_of_the_exact_answer(pair):
    exact, _, queries = pair
    assert recall(exact, exact, queries, 7) == 1.0
    upside_down = LabelIndex.build(-exact.vectors)
    assert recall(upside_down, exact, queries, 7) == 0.0
    half = exact.vectors.copy()
    half[1::2] *= -1
    wanted = full_sort(exact.vectors, queries, 7)[0]
    found = full_sort(half, queries, 7)[0]
    share = np.mean([len(set(a) & set(b)) / 7 for a, b in zip(wanted, found, strict=True)])
    assert recall(LabelIndex.build(half), exact, queries, 7) == pytest.approx(share)
    assert recall(LabelIndex.build(np.empty((0, 24))), exact, queries, 7) == 0.0


def test_few_labels_are_padded_and_equal_ones_stay_in_order(pair):
    twice = np.repeat(pair[0].vectors[:3], 2, axis=0)
    found = LabelIndex.build(twice, approximate=True).search(twice[:1], 8)
    assert found.indices[0, :2].tolist() == [0, 1]
    assert sorted(found.indices[0, :6]) == [0, 1, 2, 3, 4, 5]
    assert found.indices[0, 6:].tolist() == [-1, -1]
    assert np.isneginf(found.scores[0, 6:]).all()


def test_the_same_labels_give_the_same_graph_and_it_comes_back_from_disk(pair, tmp_path):
    exact, approximate, queries = pair
    LabelIndex.build(exact.vectors, approximate=True).save(tmp_path / "a")
    approximate.save(tmp_path / "b")
    graphs = [(tmp_path / folder / "graph.faiss").read_bytes() for folder in "ab"]
    assert graphs[0] == graphs[1]
    loaded = LabelIndex.load(tmp_path / "a")
    assert loaded.approximate
    expected = approximate.search(queries, 5)
    assert (loaded.search(queries, 5).indices == expected.indices).all()
    exact.save(tmp_path / "a")
    assert not LabelIndex.load(tmp_path / "a").approximate


def test_several_graphs_find_what_one_finds(pair, tmp_path, monkeypatch):
    exact, approximate, queries = pair
    monkeypatch.setattr(Graphs.build.__func__, "__defaults__", (700,))
    parts = LabelIndex.build(exact.vectors, approximate=True)
    parts.save(tmp_path)
    names = ["graph.1.faiss", "graph.2.faiss", "graph.3.faiss", "graph.4.faiss", "graph.faiss"]
    assert sorted(x.name for x in tmp_path.glob("graph*")) == names
    for index in (parts, LabelIndex.load(tmp_path)):
        assert recall(index, exact, queries, 10) >= recall(approximate, exact, queries, 10)
        found, expected = index.search(queries, 900, bias=2.0), exact.search(queries, 900, bias=2.0)
        assert recall(index, exact, queries, 900) > 0.99  # more than one of them has
        assert found.scores[:, :5] == pytest.approx(expected.scores[:, :5], abs=1e-5)
    (tmp_path / "graph.2.faiss").unlink()
    with pytest.raises(RunError, match="hold 1400 vectors"):
        LabelIndex.load(tmp_path)
    exact.save(tmp_path)
    assert not list(tmp_path.glob("graph*"))


def test_a_damaged_or_foreign_graph_is_an_error_that_says_so(pair, tmp_path):
    exact, approximate, _ = pair
    approximate.save(tmp_path / "a")
    LabelIndex.build(exact.vectors[:50], approximate=True).save(tmp_path / "b")
    (tmp_path / "b" / "vectors.safetensors").replace(tmp_path / "a" / "vectors.safetensors")
    with pytest.raises(RunError, match="3000 vectors"):
        LabelIndex.load(tmp_path / "a")
    graph = tmp_path / "a" / "graph.faiss"
    graph.write_bytes(graph.read_bytes()[:1_000])
    with pytest.raises(RunError, match="damaged"):
        LabelIndex.load(tmp_path / "a")
