"""Settings: defaults, files, overrides, and what is said about mistakes."""

from __future__ import annotations

import json
import tomllib
from dataclasses import FrozenInstanceError, fields
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depl.core.errors import ConfigError
from depl.run.config import Config, LinearConfig, template
from depl.run.recipes import RECIPES

SECTIONS = tuple(name for name, value in Config().to_dict().items() if isinstance(value, dict))
CONFIGS = Path(__file__).parents[2] / "configs"


def refusal(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        Config.load(overrides=overrides)
    return str(caught.value)


# Recipes


def test_every_recipe_has_its_file_which_says_the_same():
    assert {path.stem for path in CONFIGS.glob("*.toml")} == set(RECIPES)
    for name in RECIPES:
        path = CONFIGS / f"{name}.toml"
        assert Config.load(path) == Config.load(name)
        assert path.read_text(encoding="utf-8") == template(Config.load(name)), f"depl init {name}"


def test_the_default_recipe_needs_no_encoder_and_the_others_have_one():
    assert Config.load("sparse") == Config()
    assert not Config().neural
    assert [name for name in RECIPES if not Config.load(name).neural] == ["sparse"]


def test_a_recipe_is_changed_by_overrides_and_stays_what_it_was():
    changed = Config.load("small-gpu", ["retrieval.epochs=7"])
    assert changed.retrieval.epochs == 7
    assert changed.encoder.training == "full"
    assert Config.load("small-gpu").retrieval.epochs == 4
    assert changed.changed(["retrieval.epochs=4"]) == Config.load("small-gpu")


def test_the_papers_settings():
    paper = Config.load("paper")
    assert paper.encoder.name == "bert-base-uncased"
    assert (paper.encoder.document_pooling, paper.encoder.label_pooling) == ("cls", "text_mean")
    assert (paper.model, paper.linear.cull, paper.retrieval.alive) == ("depl+c", 0.0, 0.0)
    assert paper.encoder.similarity == "dot"
    assert (paper.classifier.encoder_lr, paper.classifier.pooler_lr) == (5e-5, 1e-4)
    assert paper.classifier.head_lr == 2e-3
    assert (paper.retrieval.encoder_lr, paper.retrieval.pooler_lr) == (1e-5, 1e-4)
    assert (paper.retrieval.hard_negatives, paper.retrieval.labels_per_batch) == (10, 300)
    assert (paper.descriptions.keywords, paper.descriptions.max_tokens) == (20, 16)
    assert (paper.features.min_df, paper.features.max_df) == (2, 0.7)
    assert (paper.linear.loss, paper.encoder.max_tokens) == ("hinge", 512)


@pytest.mark.parametrize(
    ("name", "rates", "labels_per_batch", "labels_per_document"),
    [
        ("eurlex-4k", (5e-5, 1e-4, 2e-3), 300, 5.30),
        ("wiki10-31k", (1e-5, 1e-4, 1e-3), 500, 18.64),
        ("amazoncat-13k", (5e-5, 1e-4, 2e-3), 300, 5.04),
    ],
)
def test_the_papers_settings_for_its_corpora(name, rates, labels_per_batch, labels_per_document):
    config = Config.load(name)
    first, second = config.classifier, config.retrieval
    assert (first.encoder_lr, first.pooler_lr, first.head_lr) == rates
    assert (second.encoder_lr, second.pooler_lr, second.head_lr) == (1e-5, 1e-4, 1e-4)
    assert second.labels_per_batch == labels_per_batch
    # A batch's positives and hard negatives fit the subset, with room for random ones.
    assert second.batch_size * (labels_per_document + second.hard_negatives) < labels_per_batch
    common = ("features", "linear", "descriptions", "encoder", "neighbours", "fusion")
    paper = Config.load("paper")
    assert all(config.section(part) == paper.section(part) for part in common)


# Defaults and the template


def test_defaults_are_those_of_the_method():
    config = Config()
    assert (config.features.min_df, config.features.max_df) == (1, 0.7)
    assert config.features.sublinear_tf is True
    assert (config.linear.C, config.linear.cull, config.linear.rare_bonus) == (0.7, 0.05, 0.025)
    assert (config.descriptions.keywords, config.descriptions.max_tokens) == (20, 16)
    assert Config.load() == Config.from_dict({}) == config


def test_template_is_toml_that_gives_the_defaults():
    values = tomllib.loads(template())
    assert Config.from_dict(values) == Config()
    assert set(values) == {field.name for field in fields(Config)}
    for name in SECTIONS:  # it is complete
        assert set(values[name]) == set(Config().section(name))


def test_template_explains_every_setting():
    lines = template().splitlines()
    assert max(map(len, lines)) <= 105
    above = dict(zip(lines[1:], lines, strict=False))
    settings = [x for x in lines if x and not x.startswith(("#", "["))]
    alone = len(fields(Config)) - len(SECTIONS)
    assert len(settings) == alone + sum(len(Config().section(name)) for name in SECTIONS)
    for line in settings:
        assert len(line.partition("  # ")[2]) > 10 or above[line].startswith("# ")


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**40),
    C=st.floats(1e-9, 1e9),
    grid=st.lists(st.floats(1e-9, 1e9), max_size=4),
    language=st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    numbers=st.booleans(),
)
def test_any_settings_come_back_from_toml_and_json(seed, C, grid, language, numbers):
    config = Config.from_dict(
        {
            "seed": seed,
            "linear": {"C": C, "C_grid": grid},
            "features": {"language": language},
            "descriptions": {"numbers": numbers},
        }
    )
    assert Config.from_dict(tomllib.loads(template(config))) == config
    assert json.loads(json.dumps(config.to_dict())) == config.to_dict()
    assert Config.from_dict(config.to_dict()) == config


def test_sections_are_plain_values():
    assert Config().section("descriptions") == {
        "keywords": 20,
        "stop_words": False,
        "numbers": False,
        "definitions": 0,
        "max_tokens": 16,
    }


def test_settings_cannot_be_changed_afterwards():
    with pytest.raises(FrozenInstanceError):
        Config().seed = 3  # type: ignore[misc]


# Dictionaries


def test_nested_settings_are_loaded_and_stay_what_they_were():
    values = {"seed": 7, "linear": {"C": 0.5}}
    config = Config.load(values, ["linear.C=2", "fusion.depth=60"])
    assert (config.seed, config.linear.C, config.fusion.depth) == (7, 2.0, 60)
    assert values == {"seed": 7, "linear": {"C": 0.5}}
    assert Config.load(values) == Config.from_dict(values) != Config()
    assert Config.load({}) == Config()


def test_mistakes_in_nested_settings_are_said():
    with pytest.raises(ConfigError, match=r"^linear\.C must be > 0; got -1\.0\.$"):
        Config.load({"linear": {"C": -1}})


def test_settings_are_loaded_from_settings():
    config = Config.load("small-gpu")
    assert Config.load(config) == config
    assert Config.load(config, ["seed=3"]).seed == 3


# Files


def test_file_is_read_and_overrides_win(tmp_path: Path):
    path = tmp_path / "c.toml"
    path.write_text("seed = 7\n[linear]\nC = 2\nloss = 'hinge'\n", encoding="utf-8")
    config = Config.load(path, ["linear.C=0.25"])
    assert (config.seed, config.linear.C, config.linear.loss) == (7, 0.25, "hinge")
    assert Config.load(str(path)).linear.C == 2.0


def test_missing_file_is_said_with_the_way_to_make_one(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"There is no settings file .*c\.toml.*depl init >"):
        Config.load(tmp_path / "c.toml")


@pytest.mark.parametrize(
    "content", [b"seed = \n", b"[linear\n", b"seed = 1\nseed = 2", b"\xff\xfe"]
)
def test_file_that_is_not_toml_is_said_by_name(tmp_path: Path, content: bytes):
    (tmp_path / "c.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"c\.toml is not valid TOML: "):
        Config.load(tmp_path / "c.toml")


def test_folder_in_place_of_a_file_is_said(tmp_path: Path):
    with pytest.raises(ConfigError, match=tmp_path.name):
        Config.load(tmp_path)


# Overrides


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("seed=3", 3),
        ("seed = 3", 3),
        ("linear.C=0.5", 0.5),
        ("linear.C=2", 2.0),
        ("linear.C=1e-3", 0.001),
        ("linear.C_grid=[0.5, 1]", (0.5, 1.0)),
        ("linear.C_grid=[]", ()),
        ("linear.loss=hinge", "hinge"),
        ('linear.loss="hinge"', "hinge"),
        ("features.language=de", "de"),
        ("features.sublinear_tf=false", False),
        ("descriptions.numbers=true", True),
    ],
)
def test_override_sets_one_value(override: str, expected: object):
    config = Config.load(overrides=[override])
    value = attrgetter(override.partition("=")[0].strip())(config)
    assert value == expected
    assert type(value) is type(expected)
    flat, default = config.to_dict(), Config().to_dict()
    changed = [k for k in default if not isinstance(default[k], dict) and flat[k] != default[k]]
    changed += [(s, k) for s in SECTIONS for k in default[s] if flat[s][k] != default[s][k]]
    assert len(changed) <= 1


def test_later_override_wins():
    assert Config.load(overrides=["seed=1", "seed=2"]).seed == 2


@pytest.mark.parametrize("override", ["linear.C", "=3", "", " =1"])
def test_override_that_is_none_is_said_with_an_example(override: str):
    assert "such as linear.C=0.5" in refusal(override)


def test_setting_has_no_settings_of_its_own():
    message = refusal("linear.C=0.5", "linear.C.x=1")
    assert "'C' in --set linear.C.x=1 is a setting, not a section" in message
    assert "linear.C must be a number" in refusal("linear.C.x=1")
    assert "linear is a section with settings of its own; got 5" in refusal("linear=5")


# Mistakes


@pytest.mark.parametrize(
    ("override", "nearest"),
    [
        ("sead=1", "seed"),
        ("linear.c=1", "linear.C"),
        ("linear.Cgrid=[1]", "linear.C_grid"),
        ("lineer.C=1", "linear"),
        ("features.mindf=1", "features.min_df"),
        ("descriptions.tokens=8", "descriptions.max_tokens"),
        ("classifier.batch=8", "classifier.batch_size"),
        ("C=1", "linear.C"),
        ("linear.depth=50", "fusion.depth"),
        ("linear.seed=1", "seed"),
        (
            "encoder.epochs=1",
            "classifier.epochs, retrieval.epochs, attention.epochs or reranker.epochs",
        ),
    ],
)
def test_unknown_setting_is_said_with_the_nearest(override: str, nearest: str):
    assert f"Did you mean {nearest}?" in refusal(override)


@pytest.mark.parametrize(
    "override",
    [
        *("threshold=1", "optimizer=adam", "gpu=1", "linear.penalty=l1", "encoder.dropout=0"),
        *("features.stopwords=1", "fusion.weight=1", "neighbours.distance=1", "retrieval.margin=1"),
    ],
)
def test_unrelated_word_gets_no_hint(override: str):
    assert "Did you mean" not in refusal(override)


def test_setting_that_is_like_none_is_said_with_all():
    message = refusal("features.zzz=1")
    assert "There is no setting features.zzz." in message
    assert "Did you mean" not in message
    assert (
        "Known: analyzer, language, pairs, min_df, max_df, sublinear_tf, title_weight." in message
    )


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("seed=1.5", "a whole number; got 1.5"),
        ("seed=true", "a whole number; got True"),
        ("linear.C=big", "a number; got 'big'"),
        ("linear.C=true", "a number; got True"),
        ("linear.C=", "a number; got ''"),
        ("features.sublinear_tf=1", "true or false; got 1"),
        ("features.language=3", "a string; got 3"),
        ("linear.C_grid=3", "a list such as [0.5, 1.0]; got 3"),
        ("linear.C_grid=[1, 'a']", "a number; got [1, 'a']"),
        ("linear.loss=log", "one of 'squared_hinge', 'hinge'; got 'log'"),
        ("features.analyzer=[1]", "one of 'simplemma', 'spacy', 'words'; got [1]"),
    ],
)
def test_value_of_another_type_is_said(override: str, expected: str):
    assert refusal(override) == f"{override.partition('=')[0]} must be {expected}."


@pytest.mark.parametrize(
    ("override", "rule"),
    [
        ("seed=-1", "must be >= 0; got -1"),
        ("threads=-2", "must be >= 0; got -2"),
        ("validation=0", "must be > 0; got 0.0"),
        ("validation=0.6", "must be <= 0.5; got 0.6"),
        ("features.min_df=0", "must be >= 1; got 0"),
        ("features.max_df=0", "must be > 0; got 0.0"),
        ("features.max_df=1.1", "must be <= 1; got 1.1"),
        ("linear.C=0", "must be > 0; got 0.0"),
        ("linear.C=nan", "must be finite; got nan"),
        ("linear.C=inf", "must be finite; got inf"),
        ("linear.C_grid=[1.0, inf]", "must be finite; got [1.0, inf]"),
        ("checkpoint_seconds=inf", "must be finite; got inf"),
        ("linear.C_grid=[1, 0]", "must be > 0; got (1.0, 0.0)"),
        ("linear.cull=-0.1", "must be >= 0; got -0.1"),
        ("linear.tol=1", "must be <= 0.5; got 1.0"),
        ("descriptions.keywords=0", "must be >= 1; got 0"),
        ("descriptions.max_tokens=0", "must be >= 1; got 0"),
    ],
)
def test_value_out_of_range_is_said_with_the_rule(override: str, rule: str):
    assert refusal(override) == f"{override.partition('=')[0]} {rule}."


@pytest.mark.parametrize(
    ("name", "end"),
    [("validation", 0.5), ("features.max_df", 1.0), ("linear.cull", 0.0), ("retrieval.alive", 0.0)],
)
def test_ends_of_a_range_are_in_it_where_they_make_sense(name: str, end: float):
    assert attrgetter(name)(Config.load(overrides=[f"{name}={end}"])) == end


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["classifier.batch_size=4", "classifier.accumulate=8"],
            "classifier.accumulate must be <= batch_size (4); got 8.",
        ),
        (
            ["retrieval.accumulate=257"],
            "retrieval.accumulate must be <= batch_size (256); got 257.",
        ),
        (["fusion.depth=deep"], "fusion.depth must be a whole number; got 'deep'."),
    ],
)
def test_settings_that_contradict_each_other_are_refused(overrides: list[str], message: str):
    assert refusal(*overrides) == message


def test_settings_that_just_agree_are_taken():
    assert Config.load(overrides=["retrieval.accumulate=256"]).retrieval.accumulate == 256


def test_settings_made_in_python_are_checked_too():
    assert Config(linear=LinearConfig(C=2)) == Config.load({"linear": {"C": 2.0}})
    assert LinearConfig(C_grid=[1, 2]).C_grid == (1.0, 2.0)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^C must be > 0; got -1\.0\.\ncull must be a number"):
        LinearConfig(C=-1, cull="a")  # type: ignore[arg-type]


def test_all_mistakes_are_in_one_message():
    with pytest.raises(ConfigError) as caught:
        Config.from_dict(
            {
                "sead": 1,
                "threads": "two",
                "linear": {"C": -1, "tol": "a", "loss": "log", "zzz": 0},
                "features": 3,
            }
        )
    lines = str(caught.value).splitlines()
    beginnings = ("There is no setting sead.", "There is no setting linear.zzz.")
    names = ("threads must", "linear.C must", "linear.tol must", "linear.loss must", "features is")
    assert len(lines) == 7
    for beginning in (*beginnings, *names):
        assert sum(line.startswith(beginning) for line in lines) == 1
