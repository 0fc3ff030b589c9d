r"""Label-wise attention: every label reads a document for itself (after BERT-LWAN).

::

    a_lt     =  softmax over tokens t of  h_t . u_l
    score(l) =  sum over t of  a_lt head_l(pooler(h_t))

A pooled vector holds all that could matter about a document, for every label the same. Here each
label has a vector u_l of its own that says which tokens it looks at (Chalkidis et al., 2020). With
u = 0 all tokens count the same: that is the classifier over their mean, from which training starts.

Only labels that the other parts agree on are scored when documents are ranked, so the cost does not
grow with the number of labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from depl.core.ranking import Ranking, agreed
from depl.neural.bert import token_states
from depl.neural.encoder import DualEncoder
from depl.neural.packing import Packed, TokenBank, on_device
from depl.neural.threads import map_single_threaded
from depl.neural.tokens import Tokens, batches, tokenize

_GPU_TOKENS, _CPU_TOKENS = 65_536, 1_024  # per batch, as where documents are encoded
# Labels whose attention is in memory at a time; the others' is computed again for gradients.
_LABELS = 1_024


@dataclass(frozen=True)
class LabelAttention:
    """Scores labels of documents by what each of them looks at.

    Parameters
    ----------
    encoder : DualEncoder
        With a head and attention.
    folder : Path
        Where it is saved, with its tokenizer.
    max_tokens : int
        Where a document is truncated.
    known : array of bool, shape (n_labels,)
        Labels that it was trained for: the vectors of the others say nothing.
    candidates : int
        How many labels of a document it scores at most.
    """

    encoder: DualEncoder
    folder: Path
    max_tokens: int
    known: NDArray[np.bool_]
    candidates: int

    def rank(self, texts: Sequence[str], rankings: Iterable[Ranking], k: int) -> Ranking:
        """The k best labels of each text by their logits, among those that others agree on.

        Parameters
        ----------
        texts : sequence of str
            The documents.
        rankings : iterable of Ranking
            The other parts'.
        k : int
            Padded where there are fewer.
        """
        candidates = agreed(rankings, self.candidates)
        # Labels may have been added since it was trained.
        there = (candidates.indices >= 0) & (candidates.indices < len(self.known))
        there &= self.known[np.where(there, candidates.indices, 0)]
        candidates = candidates.keep(there)
        tokens = tokenize(texts, self.folder, self.max_tokens)
        return candidate_ranking(self.encoder, tokens, candidates).top(k)


def candidate_ranking(encoder: DualEncoder, tokens: Tokens, candidates: Ranking) -> Ranking:
    """These labels of each document in the order of their logits."""
    encoder.eval()
    bank = TokenBank(tokens, encoder.device)
    scores = np.zeros(candidates.indices.shape, np.float32)

    @torch.inference_mode()
    def work(rows: NDArray[np.int64]) -> None:
        # Padded candidates get the scores of label 0, which are dropped below.
        labels = on_device(np.maximum(candidates.indices[rows], 0).astype(np.int64), bank.device)
        scores[rows] = attended(encoder, bank.pack(rows), labels).cpu().numpy()

    budget = _GPU_TOKENS if encoder.device.type == "cuda" else _CPU_TOKENS
    for _ in map_single_threaded(work, batches(tokens.lengths, budget), encoder.device):
        pass
    rows, columns = np.nonzero(candidates.indices >= 0)
    labels = candidates.indices[rows, columns]
    return Ranking.from_pairs(
        rows, labels, scores[rows, columns], len(candidates), candidates.indices.shape[1]
    )


def attended(encoder: DualEncoder, batch: Packed, labels: Tensor) -> Tensor:
    """Logits of labels for a batch of documents, (n_texts, n_labels), in float32.

    Parameters
    ----------
    encoder : DualEncoder
        With a head and attention.
    batch : Packed
        The documents.
    labels : Tensor of shape (n_labels,) or (n_texts, n_labels)
        The same for all documents, or each one's own.
    """
    assert encoder.attention is not None
    assert encoder.head is not None
    states, mask = batch.pad(token_states(encoder.bert, batch, encoder.training))
    dtype, pooler = states.dtype, encoder.document_pooler
    # The mean of what the head says of tokens is what it says of their mean: head and pooler are
    # linear, and together one matrix.
    weights = encoder.head.weight[labels]
    bias = encoder.head.bias[labels] + weights @ pooler.bias
    looks, weights = encoder.attention[labels].to(dtype), (weights @ pooler.weight).to(dtype)
    if labels.ndim == 2:
        return _attend(states, mask, looks, weights) + bias
    parts = zip(torch.split(looks, _LABELS), torch.split(weights, _LABELS), strict=True)
    if not torch.is_grad_enabled():
        return torch.cat([_attend(states, mask, *part) for part in parts], dim=1) + bias
    found = [
        checkpoint(_attend, states, mask, *part, use_reentrant=False, preserve_rng_state=False)
        for part in parts
    ]
    return torch.cat(found, dim=1) + bias


def _attend(states: Tensor, mask: Tensor, looks: Tensor, weights: Tensor) -> Tensor:
    """Means of the tokens' scores, weighted by each label's attention; without the bias."""
    attention = states @ looks.transpose(-1, -2)
    attention = attention.masked_fill(~mask[:, :, None], -torch.inf)
    shares = torch.softmax(attention, dim=1, dtype=torch.float32)
    return (shares * (states @ weights.transpose(-1, -2))).sum(dim=1)
