"""Make the kept run of the present format: ``python tests/run/formats/make.py FOLDER``."""

import json
import sys
from pathlib import Path

from depl.core.corpus import Corpus, Label, LabelSet
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.run.config import Config

LABELS = LabelSet([Label("1", "wine", ("grape wine",)), Label("2", "fish"), Label("3", "steel")])
ROWS = (
    ([0], "red wine from grapes of old vineyards"),
    ([0], "bottles of wine and grapes"),
    ([1], "fishing vessels land cod and herring"),
    ([1], "cod and herring from cold sea, fishing nets"),
    ([2], "steel plates and iron rods"),
    ([2], "iron and steel mills"),
    ([0, 1], "wine with fish such as cod"),
    ([0], "vineyards and wine cellars"),
    ([1], "nets of fishing vessels"),
    ([2], "rods of steel"),
)
TEXTS = ["wine and grapes", "herring and cod nets", "steel rods"]

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    ids, rows, texts = [f"d{i}" for i in range(len(ROWS))], *map(list, zip(*ROWS, strict=True))
    config = Config.load(overrides=["features.analyzer=words", "validation=0.3"])
    fit(Corpus.from_rows(ids, texts, rows, LABELS), folder / "run", config)
    (folder / "run" / ".lock").unlink()
    model = Classifier.load(folder / "run")
    said = model.predict(TEXTS, 3).rows(model.labels)
    answers = {
        "texts": TEXTS,
        "labels": [[label.id for label, _ in row] for row in said],
        "scores": [[round(score, 5) for _, score in row] for row in said],
    }
    (folder / "answers.json").write_text(json.dumps(answers, indent=2) + "\n")
