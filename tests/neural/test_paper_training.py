"""The paper's settings on real text: both branches of DEPL+c learn, or one of them starves.

The texts are docstrings of the standard library, and a text's label is its module: short training,
real words, nothing to download.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import replace

import numpy as np
import pytest

from depl.core.indicator import indicator
from depl.neural import encoder_files
from depl.neural.encoder import encode, pooled_states
from depl.neural.retriever import classifier_ranking, joint_ranking, retrieval_ranking
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import tokenize
from depl.neural.training import train
from depl.pipeline.neural import schedule_of
from depl.run.config import Config

MODULES = {
    "argparse": "command line options and arguments",
    "asyncio": "concurrent coroutines, tasks and event loops",
    "csv": "reading and writing comma separated tables",
    "datetime": "dates and times",
    "decimal": "decimal arithmetic",
    "email.message": "electronic mail",
    "http.client": "requests to web servers",
    "ipaddress": "addresses of networks",
    "logging": "writing log records",
    "mailbox": "mailboxes on disk",
    "random": "random numbers and distributions",
    "sched": "scheduling events",
    "socket": "network connections",
    "statistics": "mean, median, variance",
    "subprocess": "running other programs",
    "tarfile": "tape archives",
    "threading": "threads and locks",
    "turtle": "drawing pictures with a pen",
    "unittest": "testing code",
    "zipfile": "compressed archives",
}


def docstrings(name):
    """The documented functions, classes and methods that a module defines."""
    for _, thing in inspect.getmembers(importlib.import_module(name)):
        home = getattr(thing, "__module__", None) or ""
        if home.partition(".")[0] != name.partition(".")[0]:
            continue
        members = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else []
        for part in (thing, *(member for _, member in members)):
            text = inspect.getdoc(part) if callable(part) else None
            if text and len(text) > 60:
                yield text


@pytest.fixture(scope="module")
def corpus():
    """Texts of twenty modules, at most 16 of each; which of them a text is from."""
    found = {}
    for j, name in enumerate(MODULES):
        for text in sorted(set(docstrings(name)))[:16]:
            found.setdefault(text, j)
    texts = np.random.default_rng(0).permutation(list(found))
    return list(map(str, texts)), indicator([[found[text]] for text in texts], len(MODULES))


@pytest.fixture(scope="module")
def states(corpus):
    """What the paper's recipe pools from an encoder that stays as it is."""
    section = Config.load("paper").encoder
    folder = encoder_files.find_encoder("all-MiniLM-L6-v2")

    def make(poolers):
        return encoder_files.load_encoder(
            folder,
            n_labels=len(MODULES),
            document_pooling=section.document_pooling,
            label_pooling=section.label_pooling,
            similarity=section.similarity,
            poolers=poolers,
        )

    encoder = make("identity")
    documents = pooled_states(encoder, tokenize(corpus[0], folder, 48), "document").numpy()
    labels = pooled_states(encoder, tokenize(list(MODULES.values()), folder, 18), "label").numpy()
    return make, documents, labels


def precision_of_branches(corpus, states, poolers=None, **changes):
    """P@1 of each branch on a third of the texts, trained on the others as the recipe says."""
    make, documents, labels = states
    config = Config.load("paper")
    Y, third = corpus[1], len(documents) // 3
    held, rest = np.arange(third), np.arange(third, len(documents))
    encoder = make(poolers or config.encoder.poolers)
    # Few texts: rates ten times the paper's stand for more steps.
    first = replace(schedule_of(config.classifier), pooler_lr=1e-3, head_lr=2e-2)
    train(encoder, documents[rest], Y[rest], objective="classifier", schedule=first)
    second = replace(schedule_of(config.retrieval), pooler_lr=1e-3, head_lr=1e-3, epochs=12)
    train(
        encoder,
        documents[rest],
        Y[rest],
        objective="joint",
        schedule=replace(second, **changes),
        labels=labels,
        sampler=LabelSampler(Y[rest], None, n_hard=0, size=len(MODULES)),
    )
    vectors, phi = encode(encoder, documents[held], "document"), encode(encoder, labels, "label")
    rankings = {
        "retrieval": retrieval_ranking(encoder, vectors, phi, 1),
        "classifier": classifier_ranking(encoder, vectors, 1),
        "joint": joint_ranking(encoder, vectors, phi, 1),
    }
    counts = np.bincount(Y[rest].indices, minlength=len(MODULES))
    popular = np.full((third, 1), counts.argmax(), np.int32)
    found = {name: ranking.indices for name, ranking in rankings.items()} | {"popular": popular}
    own = Y[held].indices  # one label each
    return {name: float((indices[:, 0] == own).mean()) for name, indices in found.items()}


@pytest.mark.parametrize("poolers", ["random", "identity"])
def test_with_the_papers_settings_every_branch_is_far_above_popularity(corpus, states, poolers):
    assert Config.load("paper").retrieval.alive == 0
    found = precision_of_branches(corpus, states, poolers)
    assert min(found[x] for x in ("retrieval", "classifier", "joint")) > 4 * found["popular"]


def test_under_the_joint_loss_from_the_start_the_retrieval_branch_starves(corpus, states):
    found = precision_of_branches(corpus, states, apart=0.0)
    assert found["retrieval"] < found["classifier"] / 2
    assert found["joint"] == found["classifier"]  # what is left of both


def test_kept_alive_no_branch_starves(corpus, states):
    found = precision_of_branches(corpus, states, apart=0.0, alive=0.7)
    assert min(found[x] for x in ("retrieval", "classifier", "joint")) > 4 * found["popular"]
