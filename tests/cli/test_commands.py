"""The command line: every verb, well and badly used."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import depl
import depl.__main__ as entry
from depl.cli.app import app
from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.errors import ConfigError, CorpusError, DeplError, RunError
from depl.evaluation import scores as evaluation
from depl.pipeline.fit import fit
from depl.pipeline.stages import stage_names
from depl.run.config import Config
from depl.run.folder import Run

pytestmark = pytest.mark.usefixtures("without_figures")

METRICS = {
    *(f"{metric}@{k}" for metric in ("P", "PSP", "nDCG", "R", "RP", "macroF1") for k in (1, 3, 5)),
    "R@10",
    "ECE@5",  # scores are probabilities
}
BAND = {
    "labels",
    "labels_in_test",
    *(f"macroF1@{k}{which}" for k in (1, 3, 5) for which in ("", "_in_test")),
    *(f"R@{k}" for k in (1, 3, 5, 10)),
}


STAGE_NAMES = stage_names(Config())


def depl_(*arguments: object, stdin: str | None = None):
    """Run a command that must succeed."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == 0, (result.exception, result.output)
    return result


def refused(kind: type[DeplError], *arguments: object, stdin: str | None = None) -> str:
    """Run a command that must fail with an error of this kind; gives its message."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    assert isinstance(result.exception, kind), (result.exception, result.output)
    return str(result.exception)


def misused(*arguments: object) -> str:
    """Run a command with arguments that it does not take; gives what it says."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 2
    return result.output


def records(result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.split("\n") if line]


def stages(run: Path) -> list[str]:
    return list(json.loads((run / "manifest.json").read_text())["stages"])


@pytest.fixture(scope="module")
def bracketed(tmp_path_factory) -> Path:
    """A run whose labels have names that look like console markup."""
    labels = LabelSet([Label("[a]", "oil [crude]"), Label("b[/]", "closed [/b] tag")])
    texts = ["crude oil wells", "oil from wells", "open and closed doors", "closed doors"]
    corpus = Corpus.from_rows(list("1234"), texts, [[0], [0], [1], [1]], labels)
    config = Config.from_dict({"features": {"min_df": 1}})
    return fit(corpus, tmp_path_factory.mktemp("runs") / "bracketed", config).path


# depl itself


def script(*arguments: object) -> subprocess.CompletedProcess[str]:
    depl_script = Path(sys.executable).with_name("depl")
    return subprocess.run(
        [depl_script, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_error_is_one_message_on_standard_error_and_exit_code_2(tmp_path: Path):
    done = script("predict", tmp_path / "nowhere", tmp_path / "nothing.txt")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: There is no run folder ")
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_script_writes_settings_to_standard_output():
    done = script("init")
    assert (done.returncode, done.stderr) == (0, "")
    assert Config.from_dict(tomllib.loads(done.stdout)) == Config()


@pytest.mark.parametrize("verb", ["init", "fit"])
def test_interruption_is_said_and_ends_with_130(
    corpus_folder: Path, tmp_path: Path, monkeypatch, capsys, verb: str
):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("depl.run.config.template", interrupted)
    monkeypatch.setattr("depl.pipeline.fit.fit", interrupted)
    arguments = [str(corpus_folder), "--out", str(tmp_path / "run")] if verb == "fit" else []
    monkeypatch.setattr(sys, "argv", ["depl", verb, *arguments])
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with pytest.raises(SystemExit) as end:
        entry.main()
    for number, handler in before.items():
        signal.signal(number, handler)
    assert end.value.code == 130
    kept = "; finished stages are kept, and the same command continues" if verb == "fit" else ""
    assert capsys.readouterr().err.endswith(f"\nInterrupted{kept}.\n")


def test_version_is_printed():
    assert depl_("--version").stdout == f"depl {depl.__version__}\n"


def test_help_names_every_command():
    text = depl_("--help").stdout
    verbs = ("init", "fit", "evaluate", "predict", "explain", "serve", "info", "theory", "demo")
    for verb in (*verbs, "labels"):
        assert f" {verb} " in text
    assert depl_("-h").stdout == text


@pytest.mark.parametrize("verb", ["fit", "evaluate", "predict", "serve", "labels"])
def test_help_shows_metavars_and_no_python_types(verb: str):
    text = depl_(verb, "--help").stdout
    assert not re.search(r"<\w|{\w", text)


def test_unknown_command_and_option_are_refused():
    assert "No such command" in misused("fitt")
    assert "No such option" in misused("init", "--json")


# init


def test_init_prints_settings_that_fit_takes(corpus_folder: Path, tmp_path: Path):
    path = tmp_path / "c.toml"
    path.write_text(depl_("init").stdout, encoding="utf-8")
    depl_("fit", corpus_folder, "--out", tmp_path / "run", "--config", path, "--until", "corpus")
    assert Run(tmp_path / "run").config() == Config()


# fit


def test_fit_makes_a_run_and_tells_of_every_stage(corpus_folder: Path, tmp_path: Path):
    run = tmp_path / "run"
    first = depl_("fit", corpus_folder, "--out", run)
    assert first.stdout == ""  # what a program would read is on standard output: nothing
    assert "48 documents, 12 labels" in first.stderr
    assert first.stderr.count("done") == len(STAGE_NAMES)
    assert stages(run) == list(STAGE_NAMES)
    again = depl_("fit", corpus_folder, "--out", run)
    assert again.stderr.count("up to date") == len(STAGE_NAMES)
    assert "done" not in again.stderr


def test_fit_with_another_setting_makes_only_what_rests_on_it(corpus_folder: Path, own_run: Path):
    told = depl_("fit", corpus_folder, "--out", own_run, "--set", "linear.C=0.5").stderr
    stages = told.partition("\nNext:")[0].splitlines()[1:]
    lines = {line.split()[0]: line for line in stages if line and "made again" not in line}
    kept = [name for name in lines if "up to date" in lines[name]]
    assert kept == ["corpus", "features", "slice"]
    assert [name for name in lines if "done" in lines[name]] == [
        "linear",
        "held_out",
        "characters",
        "descriptions",
        "fusion",
    ]
    assert "made again: C 0.7 -> 0.5" in told
    assert Run(own_run).config().linear.C == 0.5


def test_fit_stops_after_a_stage_and_goes_on(corpus_folder: Path, tmp_path: Path):
    run = tmp_path / "run"
    depl_("fit", corpus_folder, "--out", run, "--until", "features")
    assert stages(run) == ["corpus", "features"]
    rest = depl_("fit", corpus_folder, "--out", run)
    assert stages(run) == list(STAGE_NAMES)
    assert rest.stderr.count("up to date") == 2


def test_fit_makes_stages_again_when_asked(corpus_folder: Path, own_run: Path):
    told = depl_("fit", corpus_folder, "--out", own_run, "--from", "linear").stderr
    assert told.count("made again, as asked") == 5
    assert told.count("up to date") == 3
    assert told.count("done") == 5


def test_fit_takes_a_file_and_single_settings_that_win(corpus_folder: Path, tmp_path: Path):
    config = tmp_path / "c.toml"
    config.write_text("seed = 5\n[linear]\nC = 4.0\n")
    run = tmp_path / "run"
    depl_("fit", corpus_folder, "--out", run, "--config", config, "--set", "linear.C=2.0")
    kept = Run(run).config()
    assert (kept.seed, kept.linear.C) == (5, 2.0)


def test_fit_refuses_bad_settings_before_it_reads_anything(tmp_path: Path):
    message = refused(
        *(ConfigError, "fit", tmp_path / "no corpus", "--out", tmp_path / "run"),
        *("--set", "linear.c=1", "--set", "seed=-1"),
    )
    assert "Did you mean linear.C?" in message
    assert "seed must be >= 0" in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", ["--until", "--from"])
def test_fit_refuses_an_unknown_stage_with_all_names(
    corpus_folder: Path, tmp_path: Path, option: str
):
    message = refused(ConfigError, "fit", corpus_folder, "--out", tmp_path / "run", option, "svm")
    assert "no stage 'svm'; the stages are corpus, features, linear, slice, held_out, " in message
    assert not (tmp_path / "run").exists()


def test_fit_keeps_a_run_on_another_corpus_unless_told(corpus_folder: Path, own_run: Path):
    lines = (corpus_folder / "train.jsonl").read_text().splitlines(keepends=True)
    (corpus_folder / "train.jsonl").write_text("".join(lines[:-1]))
    message = refused(RunError, "fit", corpus_folder, "--out", own_run)
    assert "another corpus" in message
    assert "--overwrite" in message
    assert depl.Classifier.load(own_run).n_train == 48
    depl_("fit", corpus_folder, "--out", own_run, "--overwrite")
    assert depl.Classifier.load(own_run).n_train == 47


def test_fit_refuses_a_folder_of_something_else(corpus_folder: Path):
    message = refused(RunError, "fit", corpus_folder, "--out", corpus_folder)
    assert "holds other files" in message
    assert sorted(p.name for p in corpus_folder.iterdir()) == [
        "dev.jsonl",
        "labels.jsonl",
        "train.jsonl",
    ]


def test_fit_leaves_bad_rows_out_when_told(corpus_folder: Path, tmp_path: Path, caplog):
    with (corpus_folder / "train.jsonl").open("a") as file:
        file.write("not json\n")
    command = ("fit", corpus_folder, "--out", tmp_path / "run", "--until", "corpus")
    assert "train.jsonl:49" in refused(CorpusError, *command)
    depl_(*command, "--on-error", "skip")
    assert "train 48" in caplog.text


def test_fit_needs_a_place_for_the_run(corpus_folder: Path):
    assert "Give --out RUN" in refused(ConfigError, "fit", corpus_folder)


def test_fit_goes_on_with_a_run_alone(corpus_folder: Path, tmp_path: Path):
    run = tmp_path / "run"
    depl_("fit", corpus_folder, "--out", run, "--set", "linear.C=0.5", "--until", "features")
    told = depl_("fit", run).stderr  # its corpus and its settings are in it
    assert told.count("up to date") == 2
    assert stages(run) == list(STAGE_NAMES)
    assert Run(run).config().linear.C == 0.5
    again = depl_("fit", run, "--set", "linear.C=0.6").stderr
    assert "C 0.5 -> 0.6" in again
    assert "omit --out" in refused(ConfigError, "fit", run, "--out", tmp_path / "other")


# evaluate


def test_evaluate_prints_a_table_and_writes_the_report(
    corpus_folder: Path, own_run: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("depl.evaluation.html.SIZES", ("wide",))
    result = depl_("evaluate", own_run, corpus_folder)
    report = depl.evaluate(depl.Classifier.load(own_run), depl.read(corpus_folder).dev)
    table = [line.split() for line in result.stdout.splitlines()]
    assert ["all", "P@1", f"{report.scores['P@1']:.2f}"] in table
    assert ["PSP@5", f"{report.scores['PSP@5']:.2f}"] in table
    assert "laws, dev: 12 documents" in result.stdout
    assert "PSP with" not in result.stdout  # the usual propensities
    html = (own_run / "report" / "dev.html").read_text(encoding="utf-8")
    assert html.lstrip().lower().startswith("<!doctype html>")
    assert "<svg" in html


def test_evaluate_prints_one_object_with_the_documented_keys(
    corpus_folder: Path, fitted_run: Path, tmp_path: Path
):
    report = tmp_path / f"a-{'long-' * 20}name.html"
    result = depl_("evaluate", fitted_run, corpus_folder, "--json", "--report", report)
    assert str(report) in result.stderr  # not broken over lines
    [scores] = records(result)
    assert set(scores) == {"documents", "labels", "bands"} | METRICS
    assert (scores["documents"], scores["labels"]) == (12, 12)
    assert list(scores["bands"]) == ["0", "1-9", "10-99", "100+"]
    assert all(set(band) == BAND for band in scores["bands"].values())
    assert [band["labels"] for band in scores["bands"].values()] == [1, 10, 1, 0]
    assert all(0 <= scores[name] <= 100 for name in METRICS)
    model = depl.Classifier.load(fitted_run)
    expected = depl.evaluate(model, depl.read(corpus_folder).dev).scores
    assert {name: scores[name] for name in METRICS} == pytest.approx(expected, abs=1e-4)
    assert report.exists()


def test_evaluate_takes_other_cut_offs(corpus_folder: Path, fitted_run: Path, tmp_path: Path):
    page = tmp_path / "page.html"
    command = ("evaluate", fitted_run, corpus_folder, "--report", page)
    [scores] = records(depl_(*command, "--k", "7, 1,2,7", "--json"))
    cuts = {k: [name for name in scores if name.endswith(f"@{k}")] for k in (1, 2, 3, 5, 7)}
    assert cuts[3] == cuts[5] == []
    assert len(cuts[1]) == len(cuts[2]) == 6
    assert cuts[7] == [*(f"{m}@7" for m in ("P", "PSP", "nDCG", "R", "RP", "macroF1")), "ECE@7"]
    model, dev = depl.Classifier.load(fitted_run), depl.read(corpus_folder).dev
    carried = [set(dev.Y[[i]].indices.tolist()) for i in range(len(dev))]
    suggested = model.predict(dev.texts, k=7).indices.tolist()  # both have the run's label order
    hits = sum(len(y & set(row)) for y, row in zip(carried, suggested, strict=True))
    assert scores["P@7"] == pytest.approx(100 * hits / (7 * len(dev)), abs=1e-4)
    assert "macroF1@7_in_test" in scores["bands"]["1-9"]
    assert "R@10" in scores["bands"]["1-9"]
    table = [line.split() for line in depl_(*command, "-k", "1,2,7").stdout.splitlines()]
    assert [row[0] for row in table if row and row[0].startswith(("P", "nDCG"))] == [
        *("P@2", "P@7", "PSP@1", "PSP@2", "PSP@7", "nDCG@7")  # P@1 follows "all" in its row
    ]
    assert sum(row[:1] == ["macro-F1@7"] for row in table) == 7  # all labels, and each band twice
    assert "Macro-F1@7" in page.read_text(encoding="utf-8")
    assert "@5" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("k", ["0", "", "1,,3", "1,-3", "five", "1.5", "1;3", "²"])
def test_evaluate_says_what_cut_offs_are(corpus_folder: Path, fitted_run: Path, k: str):
    message = refused(ConfigError, "evaluate", fitted_run, corpus_folder, f"--k={k}")
    assert f"such as 1,3,5,19; got {k!r}" in message


def test_evaluate_takes_other_propensities(corpus_folder: Path, fitted_run: Path, tmp_path: Path):
    page = tmp_path / "page.html"
    command = ("evaluate", fitted_run, corpus_folder, "--report", page)
    [scores] = records(depl_(*command, "--json", "--propensity", "0.6,2.6"))
    assert "A = 0.6, B = 2.6" in page.read_text(encoding="utf-8")
    model, dev = depl.Classifier.load(fitted_run), depl.read(corpus_folder).dev
    usual = depl.evaluate(model, dev).scores
    changed = {name for name in METRICS if scores[name] != pytest.approx(usual[name], abs=1e-4)}
    assert changed
    assert changed <= {"PSP@1", "PSP@3", "PSP@5"}
    expected = evaluation.evaluate(
        model.predict(dev.texts, k=10),
        dev,
        train_counts=model.train_counts,
        n_train=48,
        A=0.6,
        B=2.6,
    )
    assert scores["PSP@5"] == pytest.approx(expected.scores["PSP@5"], abs=1e-4)
    table = depl_(*command, "--propensity", "0.6, 2.6").stdout
    assert "12 documents; PSP with A = 0.6, B = 2.6" in table
    [parts] = records(depl_(*command, "--parts", "--json", "--propensity", "0.6,2.6"))
    assert parts["fusion"]["PSP@5"] == scores["PSP@5"]


@pytest.mark.parametrize("pair", ["0.6", "0.6,2.6,1", "a,b", "", "0.5,0", "-1,2", "nan,1", "1,inf"])
def test_evaluate_says_what_propensities_are(corpus_folder: Path, fitted_run: Path, pair: str):
    command = ("evaluate", fitted_run, corpus_folder, f"--propensity={pair}")
    assert f"such as 0.6,2.6; got {pair!r}" in refused(ConfigError, *command)


def test_evaluate_puts_several_runs_side_by_side(
    corpus_folder: Path, fitted_run: Path, own_run: Path, tmp_path: Path
):
    depl_("fit", corpus_folder, "--out", own_run, "--set", "features.analyzer=words")
    command = ("evaluate", fitted_run, own_run, corpus_folder, "--report", tmp_path / "r.html")
    table = depl_(*command).stdout
    assert table.splitlines()[1].split() == ["labels", "metric", "fitted", "own"]
    [both] = records(depl_(*command, "--json"))
    assert list(both) == ["fitted", "own"]
    assert all(set(scores) >= METRICS for scores in both.values())


def test_evaluate_tells_runs_of_one_name_in_two_folders_apart(corpus_folder: Path, tmp_path: Path):
    runs = [tmp_path / "first" / "same", tmp_path / "second" / "same"]
    for run in runs:
        depl_("fit", corpus_folder, "--out", run)
    [both] = records(depl_("evaluate", *runs, corpus_folder, "--json"))
    assert len(both) == 2


def test_evaluate_takes_the_other_names_of_a_split(
    corpus_folder: Path, fitted_run: Path, tmp_path: Path
):
    (corpus_folder / "dev.jsonl").rename(corpus_folder / "valid.jsonl")
    command = ("evaluate", fitted_run, corpus_folder, "--json", "--report", tmp_path / "r.html")
    assert records(depl_(*command, "--split", "valid")) == records(depl_(*command))


def test_evaluate_refuses_a_split_that_is_not_there(corpus_folder: Path, fitted_run: Path):
    message = refused(CorpusError, "evaluate", fitted_run, corpus_folder, "--split", "test")
    assert "has no test split" in message
    assert "dev.jsonl" in message


def test_evaluate_refuses_a_run_without_a_corpus(fitted_run: Path, corpus_folder: Path):
    message = refused(ConfigError, "evaluate", fitted_run)
    assert "set no documents aside to measure on. Name a corpus after the run: depl" in message
    assert "not a run folder" in refused(RunError, "evaluate", corpus_folder, corpus_folder)


# predict


def test_predict_prints_the_best_labels_of_a_text_a_line(fitted_run: Path, tmp_path: Path):
    (tmp_path / "texts.txt").write_text("sparkling wine\n\nvirgin olive oil\n", encoding="utf-8")
    command = ("predict", fitted_run, tmp_path / "texts.txt", "--lines", "-k", 2)
    lines = depl_(*command).stdout.splitlines()
    assert len(lines) == 6
    assert lines[0].split() == ["1", "sparkling", "wine"]
    assert lines[1].split()[1:] == ["wine", "2560"]
    assert lines[3].split() == ["3", "virgin", "olive", "oil"]  # by its line in the file
    assert lines[4].split()[1:] == ["olive", "oil", "2077"]
    ranking = depl.Classifier.load(fitted_run).predict(["sparkling wine"], 2)
    assert [line.split()[0] for line in lines[1:3]] == [f"{s:.2f}" for s in ranking.scores[0]]


def test_predict_takes_json_lines_and_gives_json_lines(
    corpus_folder: Path, fitted_run: Path, dataset: Dataset
):
    result = depl_("predict", fitted_run, corpus_folder / "dev.jsonl", "--json")
    rows = records(result)
    model = depl.Classifier.load(fitted_run)
    expected = model.predict(dataset.dev.texts).rows(model.labels)
    assert [row["id"] for row in rows] == dataset.dev.ids
    for row, best in zip(rows, expected, strict=True):
        assert [(x["id"], x["name"]) for x in row["labels"]] == [(x.id, x.name) for x, _ in best]
        scores = [s for _, s in best]
        assert [x["score"] for x in row["labels"]] == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("file", [("-",), ()])
def test_predict_reads_standard_input(fitted_run: Path, file: tuple[str, ...]):
    stdin = '{"text": "virgin olive oil"}\n{"id": "x", "text": "nuclear waste"}\n{"text": "wine"}\n'
    rows = records(depl_("predict", fitted_run, *file, "-k", 1, "--json", stdin=stdin))
    assert [row["id"] for row in rows] == ["1", "x", "3"]
    assert [row["labels"][0]["id"] for row in rows] == ["2077", "4347", "2560"]


def test_predict_tells_of_bad_rows_and_leaves_them_out(fitted_run: Path, tmp_path: Path):
    path = tmp_path / "t.jsonl"
    good = '{"id": "good", "text": "wine"}'
    path.write_text(f'{good}\nno json\n{{"id": 1}}\n[1, 2]\n7\n{{"text": \n')
    result = depl_("predict", fitted_run, path, "--json")
    assert [row["id"] for row in records(result)] == ["good"]
    told = "".join(result.stderr.split("\n"))
    for number in range(2, 7):
        assert f"t.jsonl:{number} left out:" in told
    assert told.count("left out:") == 5


def test_predict_leaves_out_a_text_that_is_none(fitted_run: Path):
    stdin = '{"id": "good", "text": "wine"}\n{"id": "bad", "text": {"a": 1}}\n'
    result = depl_("predict", fitted_run, "--json", stdin=stdin)
    assert [row["id"] for row in records(result)] == ["good"]
    assert "left out" in result.stderr


def test_predict_takes_null_for_no_id_and_no_text(fitted_run: Path):
    stdin = '{"id": null, "text": "wine"}\n{"id": "b", "text": null}\n'
    result = depl_("predict", fitted_run, stdin=stdin)
    assert result.stdout.startswith("1  wine\n")
    assert "None" not in result.stdout
    assert "standard input:2 left out: no text" in result.stderr


@pytest.mark.parametrize("end", ["\u2028", "\x85"])
def test_predict_keeps_json_with_an_unusual_line_end_in_its_text_whole(
    fitted_run: Path, tmp_path: Path, end: str
):
    path = tmp_path / "t.jsonl"
    row = json.dumps({"id": "a", "text": f"sparkling{end}wine"}, ensure_ascii=False)
    path.write_text(row + "\n", encoding="utf-8")
    assert [row["id"] for row in records(depl_("predict", fitted_run, path, "--json"))] == ["a"]


@pytest.mark.parametrize("end", ["\x0c", "\u2028"])
def test_predict_counts_lines_as_editors_do(fitted_run: Path, end: str):
    stdin = f"sparkling{end}wine\r\nvirgin olive oil\n"
    rows = records(depl_("predict", fitted_run, "--lines", "--json", stdin=stdin))
    assert [row["id"] for row in rows] == ["1", "2"]


def test_predict_reads_a_file_with_a_byte_order_mark(fitted_run: Path, tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": "a", "text": "sparkling wine"}\n', encoding="utf-8-sig")
    assert [row["id"] for row in records(depl_("predict", fitted_run, path, "--json"))] == ["a"]


@pytest.mark.parametrize("content", ["", "\n \n", "{}\n"])
def test_predict_refuses_a_file_without_documents(fitted_run: Path, tmp_path: Path, content: str):
    path = tmp_path / "t.jsonl"
    path.write_text(content)
    message = refused(CorpusError, "predict", fitted_run, path)
    assert f"No document could be read from {path}" in message
    message = refused(CorpusError, "predict", fitted_run, stdin=content)
    assert message.startswith("No document could be read from standard input")


def test_predict_refuses_files_that_it_cannot_read(fitted_run: Path, tmp_path: Path):
    missing = tmp_path / "missing.txt"
    assert f"Cannot read {missing}" in refused(CorpusError, "predict", fitted_run, missing)
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    message = refused(CorpusError, "predict", fitted_run, tmp_path)
    assert "1 file was left out" in message


def test_predict_refuses_less_than_one_label(fitted_run: Path):
    assert "-k" in misused("predict", fitted_run, "-k", 0)


@pytest.mark.parametrize("text", ["use of a[/b] here", "[bold]wine[/bold]", "[/]", "a [red] wine"])
def test_predict_prints_brackets_as_they_are(fitted_run: Path, text: str):
    assert text in depl_("predict", fitted_run, "-k", 1, stdin=text).stdout


def test_predict_tells_of_bad_rows_with_brackets(fitted_run: Path, tmp_path: Path):
    path = tmp_path / "[b].jsonl"
    path.write_text('{"text": "wine"}\n{"text"[/]: 1}\n')
    told = depl_("predict", fitted_run, path).stderr
    assert "[b].jsonl:2 left out" in "".join(told.split("\n"))


# labels


def test_labels_list_begins_with_the_rarest(fitted_run: Path):
    lines = depl_("labels", fitted_run, "list", "--limit", 3).stdout.splitlines()
    assert lines[0].split() == ["id", "name", "documents", "keywords"]
    assert lines[1].split() == ["77", "bee-keeping", "0"]
    assert lines[2].split()[:4] == ["4347", "nuclear", "safety", "3"]
    assert lines[-1].startswith("9 more labels: see more with --limit")
    cards = records(depl_("labels", fitted_run, "list", "--json"))
    counts = [card["training_documents"] for card in cards]
    assert counts == sorted(counts)
    assert len(cards) == 12


def test_labels_list_has_ids_only_where_they_are_not_the_names(tmp_path: Path):
    labels = LabelSet([Label("wine", "wine"), Label("beer", "beer")])
    texts = [f"{labels[i % 2].name} number {i}" for i in range(20)]
    rows = [[i % 2] for i in range(20)]
    corpus = Corpus.from_rows([str(i) for i in range(20)], texts, rows, labels)
    run = fit(corpus, tmp_path / "run", until="descriptions").path
    head = depl_("labels", run, "list").stdout.splitlines()[0]
    assert head.split() == ["name", "documents", "keywords"]


def test_labels_list_searches_names(fitted_run: Path):
    cards = records(depl_("labels", fitted_run, "list", "--search", "TRANSPORT", "--json"))
    assert {card["id"] for card in cards} == {"4512", "4523"}
    message = refused(CorpusError, "labels", fitted_run, "list", "--search", "zzz")
    assert "No label name or id contains 'zzz'" in message


def test_labels_show_prints_description_and_keywords(fitted_run: Path):
    text = depl_("labels", fitted_run, "show", "Wine").stdout
    model = depl.Classifier.load(fitted_run)
    card = model.card(0)
    assert text.splitlines()[0].split() == ["wine", "2560"]
    assert "grape wine" in text
    assert "6 in training" in text
    assert card.description in text
    lines = text.splitlines()[4:]
    assert "how much each word speaks for the label" in lines.pop(0)
    shown = [line.split()[-3:-1] for line in lines[: len(card.keywords)]]
    assert shown == [[term, f"{weight:.2f}"] for term, weight in card.keywords]
    like = [line.split()[-1] for line in lines[len(card.keywords) + 1 :]]
    assert like == [model.labels[i].id for i, _ in model.nearest_labels(0, 5)]
    assert not like or "1 is the same, 0 nothing" in lines[len(card.keywords)]
    rail = depl_("labels", fitted_run, "show", "rail transport").stdout
    assert "air transport 4512" in " ".join(rail.split())


def test_labels_show_gives_json(fitted_run: Path):
    [shown] = records(depl_("labels", fitted_run, "show", "2560", "--json"))
    card = depl.Classifier.load(fitted_run).card(0)
    assert (shown["id"], shown["name"], shown["alt_names"]) == ("2560", "wine", ["grape wine"])
    assert shown["training_documents"] == 6
    assert shown["description"] == card.description
    pairs = [(x["term"], x["weight"]) for x in shown["keywords"]]
    assert pairs == [(term, round(weight, 4)) for term, weight in card.keywords]


def test_labels_show_says_when_no_training_document_carries_the_label(fitted_run: Path):
    text = depl_("labels", fitted_run, "show", "77").stdout
    assert "none: no training document carries this label" in text
    assert "apiculture, honey production" in text


def test_labels_show_does_not_deny_training_documents(tmp_path: Path):
    labels = LabelSet([Label("a", "apples"), Label("b", "blank")])
    texts = ["apple pie", "apple juice", "?"]  # the only document of b has no word in it
    corpus = Corpus.from_rows(list("123"), texts, [[0], [0], [1]], labels)
    fit(corpus, tmp_path / "run", Config.from_dict({"features": {"min_df": 1}}))
    text = depl_("labels", tmp_path / "run", "show", "b").stdout
    assert "1 in training" in text
    assert "no training document" not in text


def test_labels_show_refuses_an_unknown_label(fitted_run: Path):
    message = refused(CorpusError, "labels", fitted_run, "show", "transport")
    assert "4512 (air transport)" in message
    assert "no run folder" in refused(RunError, "labels", "nowhere", "show", "wine")


def test_labels_print_brackets_as_they_are(bracketed: Path):
    listed = depl_("labels", bracketed, "list").stdout
    for text in ("[a]", "oil [crude]", "b[/]", "closed [/b] tag"):
        assert text in listed
    assert "oil [crude] [a]" in depl_("labels", bracketed, "show", "[a]").stdout
    predicted = depl_("predict", bracketed, stdin="crude oil").stdout
    assert "oil [crude] [a]" in predicted


@pytest.mark.parametrize("name", ["missing.csv", "missing.jsonl", "missing.parquet", ""])
def test_labels_add_says_that_a_file_is_missing(own_run: Path, tmp_path: Path, name: str):
    path = tmp_path / name
    what = "does not exist" if name else "is a folder"
    assert f"{path} {what}" in refused(CorpusError, "labels", own_run, "add", path)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,name\nnew,new label\n")
    command = ("labels", own_run, "add", labels, "--examples", path)
    assert f"{path} {what}" in refused(CorpusError, *command)
    assert not (own_run / "labels" / "journal.jsonl").exists()


# info


def test_info_tells_what_is_in_a_corpus(corpus_folder: Path, dataset: Dataset):
    text = depl_("info", corpus_folder).stdout
    assert text.splitlines()[0].split() == ["laws", "12", "labels"]
    assert "48 documents" in text
    assert "labels by number of training documents" in text
    [facts] = records(depl_("info", corpus_folder, "--json"))
    assert facts["labels"] == 12
    assert facts["bands"] == {"0": 1, "1-9": 10, "10-99": 1, "100+": 0}
    for split, corpus in dataset.splits.items():
        words = [len(text.split(" ")) for text in corpus.texts]
        assert facts["splits"][split] == {
            "documents": len(corpus),
            "labels_in_split": len(set(corpus.Y.indices.tolist())),
            "labels_per_document": pytest.approx(corpus.Y.nnz / len(corpus), abs=1e-4),
            "words_per_document": pytest.approx(sum(words) / len(words), abs=0.05),
        }


def test_info_tells_what_is_in_a_run(fitted_run: Path):
    text = depl_("info", fitted_run).stdout
    for stage in STAGE_NAMES:
        assert f"  {stage} " in text
    assert "48 training documents, 12 labels" in text
    [manifest] = records(depl_("info", fitted_run, "--json"))
    assert list(manifest["stages"]) == list(STAGE_NAMES)


def test_one_document_and_one_label_are_counted_in_the_singular(tmp_path: Path):
    row = '{"id": "1", "text": "crude oil", "labels": ["a"]}\n'
    (tmp_path / "train.jsonl").write_text(row)
    (tmp_path / "labels.jsonl").write_text('{"id": "a", "name": "oil"}\n')
    lines = depl_("info", tmp_path).stdout.splitlines()
    assert lines[0].endswith("  1 label")
    assert " 1 document " in lines[1]
    fitting = CliRunner().invoke(app, ["fit", str(tmp_path), "--out", str(tmp_path / "run")])
    assert "\n1 document, 1 label → " in fitting.stderr


def test_info_tells_what_is_in_an_unfinished_run(corpus_folder: Path, tmp_path: Path):
    depl_("fit", corpus_folder, "--out", tmp_path / "run", "--until", "corpus")
    text = depl_("info", tmp_path / "run").stdout
    assert "corpus" in text
    assert "linear" not in text


def test_info_refuses_what_is_neither(tmp_path: Path):
    assert "There is no file or folder" in refused(CorpusError, "info", tmp_path / "nowhere")
    assert "in no format that depl knows" in refused(CorpusError, "info", tmp_path)
    message = refused(CorpusError, "info", tmp_path, "--format", "jsonnl")
    assert "Did you mean 'jsonl'?" in message
