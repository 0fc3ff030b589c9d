r"""The dual encoder: one BERT for documents and labels, a pooler for each (sections 3.3 and 3.4).

::

    document  ->  BERT  ->  mean (or CLS)  ->  document pooler  ->  phi_doc   \
                                                                              dot product
    label     ->  BERT  ->  mean (or CLS)  ->  label pooler     ->  phi_label /

With a head, ``head(phi_doc)`` are the scores of a classifier.

Batches are packed: all tokens of all texts in one row, no padding. On a CPU each thread has
its own batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from depl.core.executor import Executor
from depl.core.progress import bar
from depl.core.ranking import Ranking
from depl.neural.bert import token_states
from depl.neural.layers import Layer, int8_layers, multiplies_int8
from depl.neural.packing import Packed, Rows, TokenBank
from depl.neural.threads import map_single_threaded, one_thread
from depl.neural.tokens import Texts, Tokens, batches

Pooling = Literal["mean", "text_mean", "cls"]
Poolers = Literal["identity", "random"]
Similarity = Literal["cosine", "dot"]
Side = Literal["document", "label"]

_GPU_TOKENS, _CPU_TOKENS = 65_536, 1_024  # tokens per batch
_TASK_TOKENS = 131_072  # of the batches that a worker of a cluster encodes before it answers


class DualEncoder(nn.Module):
    """Documents and labels in one space.

    Parameters
    ----------
    bert : PreTrainedModel
        Any Hugging Face encoder; BERT and NomicBERT get the packed fast path.
    n_labels : int
        Size of the classification head; 0 for none.
    document_pooling, label_pooling : {"mean", "text_mean", "cls"}
        How token states become one vector: their mean, the mean without the first and the last
        ([CLS] and [SEP]), or the first. The paper uses CLS for documents and the mean of the text's
        own tokens for labels; with a small sentence encoder the mean is better for both.
    poolers : {"identity", "random"}
        What the linear poolers start as: the identity, so that a sentence encoder's vectors are
        kept; or random weights, as PyTorch initialises them, so that dot products start near 0.
    similarity : {"cosine", "dot"}
        Cosines times a learned scale, plus an offset; or the paper's dot product.
    int8 : bool
        Encode with 8-bit integers on a CPU (no effect on training and on GPUs): two to three times
        as fast, with slightly different vectors.
    attention : bool
        Labels weigh the tokens of a document by vectors of their own (``depl.neural.attention``).
    compiled : bool
        What lies between 8-bit products is compiled. Encoders of runs that were fitted when it was
        not go on as they were: a rounding in another place changes a vector by a thousandth.
    """

    def __init__(
        self,
        bert: PreTrainedModel,
        *,
        n_labels: int = 0,
        document_pooling: Pooling = "mean",
        label_pooling: Pooling = "mean",
        poolers: Poolers = "identity",
        similarity: Similarity = "cosine",
        int8: bool = False,
        attention: bool = False,
        compiled: bool = True,
    ) -> None:
        super().__init__()
        size = bert.config.hidden_size
        self.bert = bert
        self.document_pooling: Pooling = document_pooling
        self.label_pooling: Pooling = label_pooling
        self.cosine = similarity == "cosine"
        self.int8 = int8
        self.compiled = compiled
        self._int8_layers: list[Layer] | None = None
        self.document_pooler = nn.Linear(size, size)
        self.label_pooler = nn.Linear(size, size)
        if poolers == "identity":
            for pooler in (self.document_pooler, self.label_pooler):
                nn.init.eye_(pooler.weight)
                nn.init.zeros_(pooler.bias)
        self.head = nn.Linear(size, n_labels) if n_labels else None
        if self.head is not None:
            nn.init.normal_(self.head.weight, std=0.02)
            nn.init.constant_(self.head.bias, -4.0)  # labels are rare: start from "no"
        self.attention: nn.Parameter | None = None
        if attention:
            self.add_attention()
        # Cosines times a scale, plus an offset, are logits; both have a high learning rate.
        self.logit_scale = nn.Parameter(torch.tensor(20.0 if self.cosine else 1.0))
        self.logit_bias = nn.Parameter(torch.tensor(-10.0 if self.cosine else 0.0))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.logit_scale.device

    def add_attention(self) -> None:
        """Give every label of the head a vector to attend with; at first all tokens count alike."""
        assert self.head is not None
        self.attention = nn.Parameter(torch.zeros_like(self.head.weight))

    def encode_documents(self, batch: Packed) -> Tensor:
        """phi_doc of every text, (n, size), in float32."""
        return self.document_pooler(self.pool(batch, self.document_pooling))  # type: ignore[no-any-return]

    def encode_labels(self, batch: Packed) -> Tensor:
        """phi_label of every text, (n, size), in float32."""
        return self.label_pooler(self.pool(batch, self.label_pooling))  # type: ignore[no-any-return]

    def similarity(self, documents: Tensor, labels: Tensor) -> Tensor:
        """Logits of every document with every label, (n_documents, n_labels)."""
        if not self.cosine:
            return documents @ labels.T
        documents = F.normalize(documents, dim=-1)
        labels = F.normalize(labels, dim=-1)
        return self.logit_scale * (documents @ labels.T) + self.logit_bias

    def train(self, mode: bool = True) -> DualEncoder:
        """As in every module; 8-bit copies are dropped where weights may change from now on."""
        if mode:
            self._int8_layers = None
        return super().train(mode)

    def pool(self, batch: Packed, pooling: Pooling) -> Tensor:
        """Pooled last states, (n, size) float32: the input of a pooler."""
        layers = None
        on_cpu = self.device.type == "cpu" and not torch.is_grad_enabled()
        if self.int8 and on_cpu and multiplies_int8():
            layers = self._int8_layers = self._int8_layers or int8_layers(self.bert)
        states = token_states(self.bert, batch, self.training, layers, compiled=self.compiled)
        if pooling == "cls":
            return states[batch.starts[:-1].long()].float()
        states, counts = states.float(), batch.starts[1:] - batch.starts[:-1]
        if pooling == "text_mean":
            last = (counts - 1)[batch.text]
            # A text without a token of its own has nothing but the special ones.
            own = (batch.positions > 0) & (batch.positions < last) | (last < 2)
            states = states * own[:, None]
            counts = torch.where(counts > 2, counts - 2, counts)
        sums = states.new_zeros(batch.n_texts, states.shape[1])
        sums = sums.index_add(0, batch.text, states)
        return sums / counts.clamp(min=1)[:, None]


def pooled_batches(
    encoder: DualEncoder, bank: TokenBank, batches: Iterable[Rows], pooling: Pooling
) -> Iterator[tuple[Rows, Tensor]]:
    """Each batch with its pooled states, in order, without gradients.

    On a CPU each batch is computed by a thread of its own: they never wait for each other, and the
    vectors do not depend on their number. Batches of about 1,000 tokens are best: their states stay
    in the cache and fill pages already there.
    """

    @torch.inference_mode()
    def work(rows: Rows) -> tuple[Rows, Tensor]:
        return rows, encoder.pool(bank.pack(rows), pooling)

    yield from map_single_threaded(work, batches, encoder.device)


def shared_batches(
    encoder: DualEncoder,
    tokens: Tokens,
    batches: Iterable[Rows],
    pooling: Pooling,
    executor: Executor,
) -> Iterator[tuple[Rows, Tensor]]:
    """The same by the workers of an executor: some batches with their pooled states, in order.

    Each batch is as it would be on one machine, so the vectors are the same.
    """
    tasks: deque[list[Rows]] = deque()

    def some() -> Iterator[tuple[Tokens, list[int]]]:
        group: list[Rows] = []
        size = 0
        for rows in chain(batches, [None]):
            if group and (rows is None or size >= _TASK_TOKENS):
                tasks.append(group)
                yield tokens.take(np.concatenate(group)), [len(x) for x in group]
                group, size = [], 0
            if rows is not None:
                group.append(rows)
                size += int(tokens.lengths[rows].sum())

    for states in executor.map(_pool, (encoder, pooling), some(), compiled=False, ahead=2):
        yield np.concatenate(tasks.popleft()), torch.tensor(states)


def _pool(what: tuple[DualEncoder, Pooling], task: tuple[Tokens, list[int]]) -> NDArray[np.float32]:
    """The pooled states of batches of so many texts each."""
    (encoder, pooling), (tokens, sizes) = what, task
    batches = np.split(np.arange(len(tokens)), np.cumsum(sizes)[:-1])
    found = pooled_batches(encoder, TokenBank(tokens, encoder.device), batches, pooling)
    return np.concatenate([states.numpy() for _, states in found])


@torch.inference_mode()
def pooled_states(
    encoder: DualEncoder,
    tokens: Tokens,
    side: Side,
    *,
    title: str = "",
    budget: int | None = None,
    executor: Executor | None = None,
) -> Tensor:
    """The input of the poolers: the pooled last states of many texts, (n, size) float32.

    Texts go from long to short in batches of about ``budget`` tokens. An executor's workers take
    their part where the encoder is on a CPU; a GPU is quicker than sending.
    """
    encoder.eval()
    pooling = encoder.document_pooling if side == "document" else encoder.label_pooling
    budget = budget or (_GPU_TOKENS if encoder.device.type == "cuda" else _CPU_TOKENS)
    out = torch.empty(len(tokens), encoder.document_pooler.in_features, device=encoder.device)
    parts = batches(tokens.lengths, budget)
    if executor is not None and encoder.device.type == "cpu":
        found = shared_batches(encoder, tokens, parts, pooling, executor)
    else:
        found = pooled_batches(encoder, TokenBank(tokens, encoder.device), parts, pooling)
    with bar(title or f"encoding {side}s", total=len(tokens)) as tell:
        done = 0
        for rows, states in found:
            out[torch.from_numpy(rows).to(out.device)] = states
            done += len(rows)
            tell(done, "")
    return out


@torch.inference_mode()
def encode(
    encoder: DualEncoder, texts: Texts, side: Side, executor: Executor | None = None
) -> Tensor:
    """Vectors of many texts, (n, size) float32, on the encoder's device."""
    if isinstance(texts, Tokens):
        states = pooled_states(encoder, texts, side, executor=executor)
    else:
        states = torch.from_numpy(texts).to(encoder.device)
    with one_thread():
        return (encoder.document_pooler if side == "document" else encoder.label_pooler)(states)  # type: ignore[no-any-return]


def rank(
    scores: Callable[[slice], Tensor],
    n: int,
    k: int,
    block: int = 2_048,
    device: torch.device = torch.device("cpu"),  # noqa: B008 - it is constant
) -> Ranking:
    """Top k of scores computed a block of documents at a time; ties by label position."""
    out = Ranking.empty(n, k)

    @torch.inference_mode()
    def fill(first: int) -> None:
        rows = slice(first, min(first + block, n))
        values, labels = torch.sort(scores(rows), dim=1, descending=True, stable=True)
        width = min(k, values.shape[1])
        out.indices[rows, :width] = labels[:, :width].cpu().numpy()
        out.scores[rows, :width] = values[:, :width].cpu().numpy()

    for _ in map_single_threaded(fill, range(0, n, block), device):
        pass
    return out
