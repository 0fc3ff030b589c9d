"""States of texts that are remembered are those that the encoder would give."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from depl.core.hashes import text_digest
from depl.neural.latest_states import LatestStates


def state(text: str) -> list[float]:
    return [float(len(text)), float(sum(map(ord, text)))]


@given(st.lists(st.lists(st.text("ab", max_size=3), max_size=8), max_size=6), st.integers(1, 9))
def test_any_calls_give_what_encoding_all_would(calls, most):
    latest = LatestStates(most)
    for texts in calls:
        asked = []

        def encode(some, asked=asked):
            asked += some
            return np.array([state(x) for x in some], np.float32).reshape(-1, 2)

        known = latest.known(map(text_digest, texts))
        found = latest.of(texts, encode)
        assert found.tolist() == [state(x) for x in texts]
        if len(texts) <= most:
            assert set(asked) == {x for x in texts if text_digest(x) not in known}
            assert len(asked) == len(set(asked))
            assert set(latest.known(map(text_digest, texts))) == set(map(text_digest, texts))


def test_those_not_asked_for_longest_go_first():
    latest = LatestStates(2)
    latest.learn({"a": np.zeros(1), "b": np.zeros(1)})
    latest.known(["a"])
    latest.learn({"c": np.zeros(1)})
    assert set(latest.known("abc")) == {"a", "c"}


def test_all_that_is_given_is_known():
    latest = LatestStates(2)
    latest.learn({name: np.zeros(1) for name in "abcde"})
    assert set(latest.known("abcde")) == set("abcde")
