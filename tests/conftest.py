"""A small corpus about European law that anyone can read, and a run fitted on it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

from depl.core.corpus import Corpus, Dataset, Label, LabelSet

# A shared machine may be slow for a moment; that is no failure of what is tested.
settings.register_profile("depl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("depl")

# Flushing protects from a loss of power, which no test can cause, and takes a third of the time of
# a small fit. Processes that tests start and kill flush as usual.
os.fsync = lambda _: None

# Typer makes all commands again for every call of one; they do not change.
typer.testing._get_command = cache(typer.main.get_command)

# Files that take longest, so that they do not start last and keep one of two workers waiting.
# The second needs no numba: meanwhile the worker with the first compiles its kernels for both.
LONGEST = ("test_cluster", "test_limits", "test_resuming", "test_lost_nodes", "test_demo")
LONGEST += ("test_page", "test_page_work", "test_predict", "test_neural", "test_systems")
LONGEST += ("test_commands",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; the order within a file stays."""
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))


LABELS = (
    Label("2560", "wine", ("grape wine",)),
    Label("17", "customs duty"),
    Label("3191", "fishing quota", ("catch quota", "TAC")),
    Label("1590", "milk product"),
    Label("4347", "nuclear safety"),
    Label("4512", "air transport"),
    Label("2077", "olive oil"),
    Label("192", "animal disease"),
    Label("5181", "data protection"),
    Label("4523", "rail transport"),
    Label("2897", "textile import"),
    Label("77", "bee-keeping", ("apiculture", "honey production")),  # in dev only
)

TRAIN = """
2560 | Council Regulation on the bottling of sparkling wine made from white grapes
2560 | Rules for the labelling of table wines and of quality wines from named vineyards
2560 | Distillation of table wine and of grape must in the wine year
2560 | The planting of vines and the harvest of grapes in vineyards on steep slopes
2560 17 | Customs duties on liqueur wine and on sparkling wines brought in from third countries
2560 17 | Tariff quota for wines of fresh grapes, with a reduced customs duty
17 | Suspension of the duties of the common customs tariff on certain chemicals
17 | Opening of a tariff quota for raisins at a reduced rate of duty
17 | Repayment of import duties by the customs authorities of a member state
17 | Classification of goods in the combined nomenclature of the common customs tariff
17 | Customs valuation of goods and the proof of their origin
17 | Anti-dumping duty on imports of ball bearings
17 2897 | Import duties on cotton fabric and woven textile articles from third countries
17 2897 | Tariff ceilings for yarn, knitted garments and other textiles
17 2077 | Levy and customs duty on olive oil that has been refined
17 3191 | Tariff quota for frozen cod and herring landed by vessels of third countries
17 1590 | Duties on the import of butter and cheese under a tariff quota
2897 | Quantitative limits on the import of cotton yarn and garments
2897 | Double checking of textile products woven from wool or silk
2897 | Surveillance of imports of knitted garments and fabrics
3191 | Total allowable catches of cod and haddock in the North Sea for fishing vessels
3191 | Fishing for herring by vessels is stopped because the catch quota is exhausted
3191 | Allocation of catch quotas among vessels fishing for mackerel and sprat
3191 | Mesh sizes of nets and the landing of undersized fish by fishing vessels
3191 | Logbooks of fishing vessels and the reporting of catches of hake
1590 | Private storage of butter and of skimmed milk powder by dairies
1590 | Aid for skimmed milk that dairies turn into casein
1590 | Refunds on the export of cheese, cream and other milk products
1590 | Quality of raw milk delivered by farms to dairies and the fat content of cream
1590 192 | Raw milk from cows in herds that are free of brucellosis and tuberculosis
192 | Measures against foot and mouth disease in cattle and pigs
192 | Vaccination of herds against classical swine fever
192 | Slaughter of infected poultry and the control of avian influenza
192 | Bluetongue in sheep and cattle, zones of restriction and vaccines
4347 | Safety of reactors in nuclear power stations and the storage of spent fuel
4347 | Radiation protection of workers who handle radioactive waste
4347 | Shipment of radioactive waste and spent nuclear fuel between reactors
4512 | Licences of air carriers and access of airlines to routes
4512 | Compensation of passengers of airlines whose flight was cancelled
4512 | Allocation of slots at airports to air carriers
4512 5181 | Transfer of passenger name records by airlines and the privacy of passengers
5181 | Processing of personal data and the privacy of the persons concerned
5181 | Consent of the person to the storage of personal data and the right to erasure
4523 | Interoperability of railways and signalling on high speed track
4523 | Licences of railway undertakings and the use of railway track by freight trains
4523 4512 | State aid to railways and to airports in the regions
2077 | Intervention price of virgin olive oil and the yield of olives
2077 | Standards for the labelling of virgin olive oil from olive groves
"""

DEV = """
2560 | Labelling of sparkling wines and of grape must from vineyards
2560 17 | Customs duty on table wine from third countries
17 | Common customs tariff and duties on chemicals
2897 17 | Duties on knitted garments and cotton yarn
3191 | Catch quotas for cod and herring of fishing vessels
1590 | Skimmed milk powder and butter in private storage
192 | Swine fever, vaccination of pigs and slaughter of infected herds
4347 | Spent fuel of nuclear reactors
4512 | Passengers of airlines and flights from airports
5181 | Personal data and privacy
4523 | Freight trains on railway track
77 | Hives of bees, honey and the keeping of apiaries
"""


def parse(table: str, split: str, labels: LabelSet) -> Corpus:
    rows = [line.split(" | ") for line in table.strip().splitlines()]
    return Corpus.from_rows(
        [f"{split}-{i}" for i in range(1, len(rows) + 1)],
        [text for _, text in rows],
        [[labels.index(label) for label in carried.split()] for carried, _ in rows],
        labels,
    )


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    """48 training and 12 development documents over 12 labels; the last is not in training."""
    labels = LabelSet(LABELS)
    splits = {"train": parse(TRAIN, "train", labels), "dev": parse(DEV, "dev", labels)}
    return Dataset(labels, splits, name="laws")


@pytest.fixture
def corpus_folder(dataset: Dataset, tmp_path: Path) -> Path:
    """The data set as a folder of JSON lines, this test's own."""
    folder = tmp_path / "laws"
    folder.mkdir()
    labels = [{"id": x.id, "name": x.name, "alt_names": list(x.alt_names)} for x in LABELS]
    dump(folder / "labels.jsonl", labels)
    for name, corpus in dataset.splits.items():
        carried = [[LABELS[j].id for j in row.indices] for row in corpus.Y]
        rows = zip(corpus.ids, corpus.texts, carried, strict=True)
        dump(folder / f"{name}.jsonl", [{"id": i, "text": t, "labels": y} for i, t, y in rows])
    return folder


def dump(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="session")
def fitted_run(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with the default settings, to be read only."""
    from depl.pipeline.fit import fit

    return fit(dataset.train, tmp_path_factory.mktemp("runs") / "fitted").path


@pytest.fixture
def figures_in_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are written in half the time; the tests of reports look at both sizes."""
    monkeypatch.setattr("depl.evaluation.html.SIZES", ("wide",))


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without their figures, for tests that do not look at them: drawing takes longest."""
    monkeypatch.setattr("depl.evaluation.html.SIZES", ())


@pytest.fixture
def own_run(fitted_run: Path, tmp_path: Path) -> Path:
    """A copy of the fitted run that a test may change."""
    return Path(shutil.copytree(fitted_run, tmp_path / "own"))


def accept_changes(run: Path, stage: str) -> None:
    """Take the files of a stage as they are now for what was written."""
    from depl.run import manifest

    contents = manifest.read(run)
    contents["stages"][stage]["files"] = manifest.as_json(run / stage)
    manifest.write(run, contents)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray cluster of two nodes, for tests that need one."""
    from tests.clusters import two_nodes

    with two_nodes() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def many_tasks(fitted_run: Path) -> Iterator[None]:
    """Several chunks and blocks, although the corpora are small; not in the run of other tests."""
    from depl.sparse import chunks, counting, svm
    from depl.sparse.tree_shape import grow

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_CHUNK", 7)
        patch.setattr(svm, "_NARROW", 4)
        patch.setattr(chunks, "_CHUNK", 2)
        patch.setattr(grow, "__kwdefaults__", {"leaf": 3})
        yield


@pytest.fixture(scope="module")
def executor(cluster: Any) -> Iterator[Any]:
    """What does the tasks of a fit on that cluster."""
    from depl.core.cluster import RayExecutor

    with RayExecutor(cluster.address) as executor:
        yield executor
