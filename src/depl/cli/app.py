"""``depl``: all commands. Each imports what it needs when it is called, so that help is instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from depl.run.recipes import RECIPES

app = typer.Typer(
    name="depl",
    help="Tag documents with labels from a very large label set; get the rare ones right.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
labels_app = typer.Typer(no_args_is_help=True)
app.add_typer(labels_app, name="labels")

CorpusFolder = Annotated[Path, typer.Argument(metavar="CORPUS", help="Folder with the corpus.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that `depl fit` wrote.")]
Format = Annotated[
    str | None, typer.Option("--format", help="Corpus format; recognised when not given.")
]
OnError = Annotated[
    Literal["stop", "skip"],
    typer.Option("--on-error", help="Stop at bad rows, or leave them out and count them."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command()
def init(
    recipe: Annotated[
        str, typer.Argument(metavar="[RECIPE]", help=f"One of {', '.join(RECIPES)}.")
    ] = "sparse",
) -> None:
    """Print a complete, commented settings file to start from."""
    from depl.run.config import Config, template

    typer.echo(template(Config.load(recipe)), nl=False)


@app.command()
def fit(
    corpus: Annotated[
        Path, typer.Argument(metavar="CORPUS|RUN", help="A corpus, or a run to go on with.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder to make or to continue.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", help=f"A TOML file, or a recipe: {', '.join(RECIPES)}."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="One setting: section.key=value.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Stop after this stage.")] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="Make this stage and all behind it again.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run on another corpus.")
    ] = False,
    format_: Format = None,
    on_error: OnError = "stop",
) -> None:
    """Train on CORPUS. The same command again, or `depl fit RUN`, continues an interrupted run."""
    from depl.cli.fit import fit as run

    run(
        corpus,
        out,
        config=config,
        overrides=set_ or [],
        until=until,
        redo_from=from_,
        overwrite=overwrite,
        format=format_,
        on_error=on_error,
    )


@app.command()
def evaluate(
    paths: Annotated[
        list[Path], typer.Argument(metavar="RUN... CORPUS", help="One run or more, and a corpus.")
    ],
    split: Annotated[str, typer.Option("--split", help="Which split to score on.")] = "dev",
    parts: Annotated[
        bool, typer.Option("--parts", help="Score every part of the run on its own, too.")
    ] = False,
    k: Annotated[
        str,
        typer.Option(
            "-k", "--k", metavar="K,K...", help="Cut-offs of the scores; the bands' is the largest."
        ),
    ] = "1,3,5",
    propensity: Annotated[
        str,
        typer.Option(
            "--propensity",
            metavar="A,B",
            help="Of PSP@k: 0.6,2.6 for Amazon-670K and -3M, 0.5,0.4 for Wikipedia-500K.",
        ),
    ] = "0.55,1.5",
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="HTML report; by default report/SPLIT.html in the first run."
        ),
    ] = None,
    format_: Format = None,
    on_error: OnError = "stop",
    json_: Json = False,
) -> None:
    """Score one run or several side by side: table, JSON, and an HTML report with figures."""
    from depl.cli.evaluate import evaluate as run

    run(
        paths,
        split=split,
        parts=parts,
        k=k,
        propensity=propensity,
        report=report,
        format=format_,
        on_error=on_error,
        as_json=json_,
    )


@app.command()
def predict(
    run_folder: RunFolder,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...|-]",
            help="Documents: plain text (one a line), JSON lines, CSV, TSV or Parquet, also "
            "compressed; - or nothing for standard input.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", min=1, help="Labels a document: 5, or all with --threshold precision=P or f1."
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            "--threshold",
            help="Leave out labels with a lower score: a number; precision=0.8 for the lowest that "
            "makes 80 % of the suggestions right; f1 for the best balance.",
        ),
    ] = None,
    per_band: Annotated[
        bool,
        typer.Option("--per-band", help="A threshold of its own for each band of training counts."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Write to this .jsonl, .csv, .tsv or .parquet file."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted --output.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an --output that exists.")
    ] = False,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="text, jsonl, csv, tsv or parquet; recognised if not given."),
    ] = None,
    whole_files: Annotated[
        bool,
        typer.Option("--whole-files", help="A document a file; FILE may be a folder of .txt."),
    ] = False,
    text_column: Annotated[
        str, typer.Option("--text-column", help="Column or field of the text.")
    ] = "text",
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="Column or field of the id; by default id.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON lines for machines.")] = False,
) -> None:
    """Suggest labels for documents, few or millions: to the terminal, or to a file."""
    from depl.cli.predict import predict as run

    run(
        run_folder,
        files or ["-"],
        k=k,
        threshold=threshold,
        per_band=per_band,
        output=output,
        resume=resume,
        overwrite=overwrite,
        format=format_,
        whole_files=whole_files,
        text_column=text_column,
        id_column=id_column,
        as_json=json_,
    )


@app.command()
def explain(
    run_folder: RunFolder,
    text: Annotated[
        str, typer.Argument(metavar="TEXT|FILE|-", help="A text, a text file, or standard input.")
    ],
    label: Annotated[
        str | None, typer.Option("--label", help="Its id or name; by default the best labels.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Explain so many suggestions.")] = 3,
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=0, help="Training documents to show.")
    ] = 3,
    json_: Json = False,
) -> None:
    """Tell why labels are suggested for a text: words, parts, nearest training documents."""
    from depl.cli.explain import explain as run

    run(run_folder, text, label=label, k=k, neighbours=neighbours, as_json=json_)


@labels_app.callback()
def labels(context: typer.Context, run_folder: RunFolder) -> None:
    """Look at the labels of a run, and edit them: `depl labels RUN show LABEL`."""
    context.obj = run_folder


@labels_app.command("list")
def labels_list(
    context: typer.Context,
    search: Annotated[str, typer.Option("--search", help="Only names that contain this.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 20,
    json_: Json = False,
) -> None:
    """List labels with their training counts and first keywords, rarest first."""
    from depl.cli.labels import list_labels

    list_labels(context.obj, search=search, limit=limit, as_json=json_)


@labels_app.command("show")
def labels_show(
    context: typer.Context,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Its id or its name.")],
    json_: Json = False,
) -> None:
    """Show a label's pseudo description, and its keywords with their weights."""
    from depl.cli.labels import show_label

    show_label(context.obj, label, as_json=json_)


@labels_app.command("add")
def labels_add(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Labels: id, name, alt_names?, description?.")
    ],
    examples: Annotated[
        Path | None, typer.Option("--examples", help="Documents that carry them: text, labels.")
    ] = None,
) -> None:
    """Add labels that can be suggested at once, without training."""
    from depl.cli.labels import add_labels

    add_labels(context.obj, file, examples)


@labels_app.command("describe")
def labels_describe(
    context: typer.Context,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Its id or its name.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it is about.")],
) -> None:
    """Replace a label's description."""
    from depl.cli.labels import describe_label

    describe_label(context.obj, label, text)


@labels_app.command("rename")
def labels_rename(
    context: typer.Context,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Its id or its name.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its new name.")],
) -> None:
    """Replace a label's name."""
    from depl.cli.labels import rename_label

    rename_label(context.obj, label, name)


@labels_app.command("remove")
def labels_remove(
    context: typer.Context,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Its id or its name.")],
) -> None:
    """Never suggest a label again."""
    from depl.cli.labels import remove_label

    remove_label(context.obj, label)


@labels_app.command("undo")
def labels_undo(context: typer.Context) -> None:
    """Take back the last edit of labels that is in force."""
    from depl.cli.labels import undo

    undo(context.obj)


@labels_app.command("history")
def labels_history(context: typer.Context, json_: Json = False) -> None:
    """List all edits of labels, the oldest first."""
    from depl.cli.labels import history

    history(context.obj, as_json=json_)


@app.command()
def serve(
    run_folder: RunFolder,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="0 finds a free one.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="DEPL_TOKEN",
            help="What clients must show to change labels; others can see an option, so prefer "
            "the variable or --token-file.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File that holds the token.")
    ] = None,
    token_for_all: Annotated[
        bool, typer.Option("--token-for-all", help="Ask for the token at every request.")
    ] = False,
    allow_writes: Annotated[
        bool,
        typer.Option("--allow-writes", help="Changes without a token, from this machine alone."),
    ] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Labels stay as they are.")] = (
        False
    ),
    max_batch: Annotated[
        int, typer.Option("--max-batch", min=1, help="Texts the model gets at a time.")
    ] = 32,
    max_wait_ms: Annotated[
        float, typer.Option("--max-wait-ms", min=0, help="How long a text waits for company.")
    ] = 5.0,
    queue: Annotated[
        int, typer.Option("--queue", min=1, help="With so many texts waiting, answer 503.")
    ] = 1024,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, help="Seconds until a request is given up.")
    ] = 60.0,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="A line of JSON a request, on standard error.")
    ] = False,
) -> None:
    """Answer over HTTP, with a page for people. SIGHUP loads the run anew, SIGTERM ends."""
    from depl.cli.serve import serve as run

    run(
        run_folder,
        host=host,
        port=port,
        token=token,
        token_file=token_file,
        token_for_all=token_for_all,
        allow_writes=allow_writes,
        read_only=read_only,
        max_batch=max_batch,
        max_wait_ms=max_wait_ms,
        queue=queue,
        timeout=timeout,
        log_requests=log_requests,
    )


@app.command()
def info(
    path: Annotated[Path, typer.Argument(metavar="CORPUS|RUN", help="A corpus or a run folder.")],
    format_: Format = None,
    on_error: OnError = "stop",
    json_: Json = False,
) -> None:
    """Tell what is in a corpus, or in a run folder."""
    from depl.cli.info import info as run

    run(path, format=format_, on_error=on_error, as_json=json_)


@app.command()
def theory(
    run_folder: RunFolder,
    corpus: CorpusFolder,
    split: Annotated[str, typer.Option("--split", help="Which split to measure on.")] = "dev",
    documents: Annotated[
        int, typer.Option("--documents", min=1, help="Measure on so many, drawn at random.")
    ] = 200,
    format_: Format = None,
    on_error: OnError = "stop",
    json_: Json = False,
) -> None:
    """Measure what the paper's Theorem 1 says about real documents, and how close it comes."""
    from depl.cli.theory import run_theory

    run_theory(
        run_folder,
        corpus,
        split=split,
        documents=documents,
        format=format_,
        on_error=on_error,
        as_json=json_,
    )


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Run folder.")] = Path("runs/demo"),
) -> None:
    """Train, evaluate and explain on a corpus made of installed libraries' documentation."""
    from depl.cli.demo import demo as run

    run(out)


def main() -> None:
    """Run ``depl``; an error that is the user's to mend is one message and exit code 2."""
    from depl.core.errors import DeplError

    try:
        app()
    except DeplError as error:
        typer.secho("Error: ", fg="red", bold=True, err=True, nl=False)
        typer.echo(str(error), err=True)
        sys.exit(2)
    except SystemExit as end:
        if end.code == 130:  # what typer makes of a KeyboardInterrupt, without a word
            typer.echo(
                "\nInterrupted. What is finished is kept; the same command continues.", err=True
            )
        raise
