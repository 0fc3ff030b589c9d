"""``depl predict``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.markup import escape

from depl.classifier import Classifier
from depl.cli.console import err, out, print_json, progress
from depl.errors import CorpusError


def predict(run: Path, file: str, *, k: int, as_json: bool) -> None:
    """Suggest labels for every document; bad rows are told and left out."""
    documents = list(_documents(file))
    if not documents:
        raise CorpusError(f"{_named(file)} holds no document. Give a text a line, or JSON lines.")
    with progress():
        model = Classifier.load(run)
        ranking = model.predict([text for _, text in documents], k)
    for (name, text), row in zip(documents, ranking.rows(model.labels), strict=True):
        if as_json:
            labels = [{"id": x.id, "name": x.name, "score": round(s, 4)} for x, s in row]
            print_json({"id": name, "labels": labels})
        else:
            opening = " ".join(text.split())[:72]
            out.print(
                f"[bold]{escape(name)}[/]  [dim]{escape(opening)}[/]", soft_wrap=False, no_wrap=True
            )
            for label, score in row:
                out.print(f"  {score:6.2f}  {escape(label.name)} [dim]{escape(label.id)}[/]")


def _named(file: str) -> str:
    return "Standard input" if file == "-" else file


def _documents(file: str) -> Iterator[tuple[str, str]]:
    """Id and text of every document: JSON lines, or a text a line."""
    try:
        raw = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"Cannot read {_named(file)}: {error}.") from error
    for number, line in enumerate(raw.split("\n"), 1):
        if not line.strip():
            continue
        if not (file.endswith(".jsonl") or line.startswith("{")):
            yield str(number), line
            continue
        try:
            row = json.loads(line)
            name, text = row.get("id"), row["text"]
            if not isinstance(text, str | None):
                raise ValueError(f"text is {text!r:.60}")
            yield str(number if name is None else name), text or ""
        except (ValueError, KeyError, AttributeError) as error:
            err.print(
                f"[yellow]{escape(_named(file))}:{number} left out:[/] not JSON with a "
                f"text ({escape(str(error))})"
            )
