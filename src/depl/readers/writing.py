"""Writing a dataset as JSON lines, so that any format can be converted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from depl.core.corpus import Corpus, Dataset
from depl.core.errors import CorpusError

_ALWAYS = ("id", "name", "alt_names")  # fields of a label; the others only where there are some


def write(dataset: Dataset, folder: str | os.PathLike[str]) -> None:
    """Write ``labels.jsonl`` and one ``{split}.jsonl`` a split.

    The folder appears when all of it is written; it must be new or empty, so that nothing is
    overwritten.

    Parameters
    ----------
    dataset : Dataset
        What ``read`` gave, or was put together by hand.
    folder : path
        Where the files go.
    """
    # Here and not above: it imports pyarrow, a tenth of a second that reading JSON does not need.
    from depl.core.storage import whole_folder

    target = Path(folder).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CorpusError(f"{target} exists and is not empty. Name a new folder to write to.")
    with whole_folder(target) as temporary:
        labels: Iterator[dict[str, object]] = (
            {key: value for key, value in asdict(label).items() if value or key in _ALWAYS}
            for label in dataset.labels
        )
        _write_lines(temporary / "labels.jsonl", labels)
        for split, corpus in dataset.splits.items():
            _write_lines(temporary / f"{split}.jsonl", _documents(corpus))


def _documents(corpus: Corpus) -> Iterator[dict[str, object]]:
    ids, indptr, indices = corpus.labels.ids, corpus.Y.indptr, corpus.Y.indices
    for row, (own_id, text) in enumerate(zip(corpus.ids, corpus.texts, strict=True)):
        carried = indices[indptr[row] : indptr[row + 1]]
        yield {"id": own_id, "text": text, "labels": [ids[position] for position in carried]}


def _write_lines(path: Path, rows: Iterator[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
