"""``depl info``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from depl.cli.console import count, out, print_json, progress
from depl.cli.options import (
    Encoding,
    Format,
    IdColumn,
    Json,
    LabelColumns,
    LabelsAsTheyAre,
    LabelSeparator,
    Language,
    OnError,
    PathSeparator,
    Sheet,
    TextColumns,
    VocabularyFile,
)
from depl.cli.taking import concepts, print_doubts, print_taken

if TYPE_CHECKING:
    from depl.core.corpus import Dataset
    from depl.run.folder import Run

_BAR = 40  # characters of the longest bar


def info(
    path: Annotated[
        Path, typer.Argument(metavar="CORPUS|RUN", help="A table, a corpus folder or a run folder.")
    ],
    text: TextColumns = None,
    labels: LabelColumns = None,
    id: IdColumn = None,
    label_separator: LabelSeparator = None,
    path_separator: PathSeparator = None,
    labels_as_they_are: LabelsAsTheyAre = False,
    vocabulary: VocabularyFile = None,
    language: Language = None,
    format: Format = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    on_error: OnError = "stop",
    as_json: Json = False,
) -> None:
    """Show what a corpus or a run folder contains."""
    from depl.readers.columns import Columns
    from depl.readers.corpora import read_records
    from depl.run.folder import Run

    if Run(path).has_manifest:
        _run_info(Run.open(path), as_json=as_json)
        return
    merge = not labels_as_they_are
    columns = Columns.asked(
        text, labels, id, label_separator, merge=merge, sheet=sheet, path=path_separator
    )
    with progress():
        data, taken = read_records(
            path,
            columns,
            vocabulary=concepts(vocabulary, language),
            format=format,
            on_error=on_error,
            encoding=encoding,
        )
    if taken is not None:
        print_taken(taken, data, chosen=sheet is not None)
        print_doubts(taken, data)
    facts = _corpus_facts(data)
    if as_json:
        print_json(facts)
        return
    labels = count(facts["labels"], "label")
    if facts["labels_elsewhere"]:
        labels += f", and {facts['labels_elsewhere']:,} in no training document"
    out.print(f"[bold]{escape(data.name)}[/]  {labels}")
    for split, s in facts["splits"].items():
        documents = count(s["documents"], "document")
        out.print(
            f"  {split:<6}{documents:>19}  {s['labels_per_document']:5.2f} labels each  "
            f"{s['words_per_document']:,.0f} words each"
        )
    if facts["bands"]:
        out.print("\nlabels by number of training documents")
        _chart(facts["bands"])


def _corpus_facts(data: Dataset) -> dict[str, Any]:
    import numpy as np

    from depl.evaluation.bands import labels_per_band

    splits = {
        name: {
            "documents": len(corpus),
            "labels_in_split": int(np.count_nonzero(corpus.label_counts)),
            "labels_per_document": round(corpus.Y.nnz / max(len(corpus), 1), 4),
            "words_per_document": round(
                float(np.mean([t.count(" ") + 1 for t in corpus.texts])), 1
            ),
        }
        for name, corpus in data.splits.items()
    }
    bands, elsewhere = {}, 0
    if "train" in data.splits:
        bands = labels_per_band(data.train.label_counts)
    if bands and not data.listed:  # a fit on these documents knows no other labels
        elsewhere = bands["0"]
        bands["0"] = 0
    labels = len(data.labels) - elsewhere
    return {"labels": labels, "labels_elsewhere": elsewhere, "splits": splits, "bands": bands}


def _chart(bands: dict[str, int]) -> None:
    longest, total = max(bands.values()), sum(bands.values())
    for name, n in bands.items():
        bar = "█" * (max(1, round(_BAR * n / longest)) if n else 0)
        out.print(f"  {name:>6}  {n:>8,}  {100 * n / total:4.1f} %  [cyan]{bar}[/]")


def _run_info(run: Run, *, as_json: bool) -> None:
    from depl.evaluation.bands import labels_per_band

    manifest = run.manifest()
    if as_json:
        print_json(manifest)
        return
    writer = f", written by depl {manifest['depl']}" if "depl" in manifest else ""
    out.print(f"[bold]{escape(str(run.path))}[/]  run format {manifest['format_version']}{writer}")
    for name, stage in manifest["stages"].items():
        folder = run.path / name
        size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 2**20
        out.print(f"  {name:<14}{stage['seconds']:>8.1f} s  {size:>8.1f} MB")
    if "corpus" in manifest["stages"]:
        counts, n = run.train_counts()
        out.print(f"\n{count(n, 'training document')}, {count(len(counts), 'label')}")
        _chart(labels_per_band(counts))
