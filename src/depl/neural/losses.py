"""What training minimises: pure functions of scores and targets."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from torch import Tensor


def binary_cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean of ``-[t log s(f) + (1 - t) log(1 - s(f))]`` over documents and labels.

    Section 3.3 of the paper prints ``log s(1 - f)`` for the negatives, a slip for
    ``log(1 - s(f))``: the former does not vanish for a sure negative.

    Parameters
    ----------
    scores, targets : Tensor of shape (n_documents, n_labels)
        Logits f, and 1 for the labels that a document carries.
    """
    return F.binary_cross_entropy_with_logits(scores, targets)


def joint_cross_entropy(dual: Tensor, dense: Tensor, targets: Tensor, alive: float) -> Tensor:
    """DEPL+c (section 3.4): cross-entropy of the mean of the two branches' probabilities.

    ``p = (s(dual) + s(dense)) / 2``, computed as logarithms so that it never under- or overflows.
    Alone it lets one branch die, as a sure branch leaves the other no gradient; a share ``alive``
    of the loss is therefore each branch's own cross-entropy.

    Parameters
    ----------
    dual, dense, targets : Tensor of shape (n_documents, n_labels)
        Logits of the retrieval branch and of the classifier, and the targets.
    alive : float
        Between 0 (the paper's loss) and 1 (two separate losses).
    """
    yes = torch.logaddexp(F.logsigmoid(dual), F.logsigmoid(dense)) - math.log(2)
    no = torch.logaddexp(F.logsigmoid(-dual), F.logsigmoid(-dense)) - math.log(2)
    joint = -(targets * yes + (1 - targets) * no).mean()
    own = binary_cross_entropy(dual, targets) + binary_cross_entropy(dense, targets)
    return (1 - alive) * joint + alive * own / 2
