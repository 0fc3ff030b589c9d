"""What the paper prints, where our numbers are set beside it, and what it calls things."""

from __future__ import annotations

CORPORA = {
    "eurlex57k": "EURLEX57K",
    "tib-en": "TIB-en",
    "debtags": "debtags",
}  # by the names of their folders
# By peers.py: what benchmarks/peers calls them, and their rows.
PEERS = {
    "pecos_ova": "PECOS one-vs-all",
    "pecos_xrlinear": "PECOS XR-Linear",
    "omikuji_parabel": "omikuji Parabel",
    "omikuji_bonsai": "omikuji Bonsai",
    "libmultilabel_ova": "LibMultiLabel one-vs-rest",
    "libmultilabel_tree": "LibMultiLabel tree",
    "annif_omikuji": "Annif omikuji",
    "annif_mllm": "Annif MLLM",
    "annif_ensemble": "Annif ensemble",
    "attentionxml": "AttentionXML",
    "xrtransformer": "XR-Transformer",
}
LINEAR_PEERS = tuple(PEERS.values())[:4]  # those of docs/results.md
# What the table calls them where that is more than their name.
PEER_TITLES = {
    "AttentionXML": "AttentionXML by LibMultiLabel with our own word vectors",
    "XR-Transformer": "XR-Transformer (for X-Transformer) on our encoder",
}
# By compare.py; an algorithm on our encoder is not the published system.
OTHERS = {
    "DiSMEC": "DiSMEC",
    "PfastreXML": "PfastreXML",
    "LightXML": "LightXML's algorithm on our encoder",
    "APLC": "APLC-XLNet's algorithm on our encoder",
    "LWAN": "BERT-LWAN's algorithm on our encoder",
}
# What they are called where there is no row to explain them.
SHORT = {**{peer: peer for peer in PEERS.values()}, **OTHERS, "LightXML": "LightXML"}
SHORT |= {"APLC": "APLC-XLNet", "LWAN": "BERT-LWAN"}
# The rows of Tables 3 and 4, and what readers know them by.
SYSTEMS = {
    **{peer: PEER_TITLES.get(peer, peer) for peer in PEERS.values()},
    **OTHERS,
    "svm": "SVM",
    "classifier": "BERT classifier",
    "de-ret": "DE-ret",
    "depl": "DEPL",
    "depl+c": "DEPL+c",
    "fusion": "all parts together",
}
DRAWN = SYSTEMS | SHORT  # what figures call them, in which there is little room
# What each recipe gives, from the least to the most that it needs.
RECIPES = {
    "svm": "SVM, two CPU cores",
    "depl+c, frozen encoder": "DEPL+c with a frozen encoder, two CPU cores",
    "fusion, frozen encoder": "all parts, with a frozen encoder, two CPU cores",
    "fusion": "all parts, trained on a GPU",
}
# The branches of a recipe that compare.py trains.
BRANCHES = {
    "classifier": "BERT classifier, before",
    "depl": "DEPL",
    "depl+c": "DEPL+c",
    "depl+c retrieval": "its retrieval branch alone",
    "depl+c classifier": "its classifier alone",
}
SEEN_ONLY = "fusion, seen labels only"  # labels without a training document left out
CURVES = ("svm", "classifier", "depl", "fusion", "XR-Transformer", "AttentionXML")  # of Figure 1
# Figure 4: the length of a label's text, from none at all.
LENGTHS = {
    "classifier": "none:\nclassifier",
    "de-ret": "the name:\nDE-ret",
    "depl, 8 tokens": "8 tokens",
    "depl, 16 tokens": "16 tokens",
    "depl": "32 tokens:\nDEPL",
}

# Table 6: each system minus DEPL. Ours stand beside the paper's corpus that is more like them: laws
# with good label names, or a long tail of noisy ones.
ABLATION_METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
COUNTERPART = {
    "eurlex57k": "EUR-Lex",
    "eurlex-4k": "EUR-Lex",
    "tib-en": "Wiki10-31K",
    "wiki10-31k": "Wiki10-31K",
}
ABLATIONS = {
    "de-ret": "names alone (DE-ret)",
    "depl, no classifier first": "no classifier first",
    "depl, no hard negatives": "no hard negatives",
    "depl, 5 hard negatives": "5 hard negatives",
    "depl, CLS labels": "labels by CLS",
}
TABLE_6: dict[str, dict[str, tuple[float, ...]]] = {
    "EUR-Lex": {
        "de-ret": (-1.34, -1.18, -1.16, -3.2, -2.11, 0.18),
        "depl, no classifier first": (-6.81, -6.72, -6.16, -6.87, -7.09, -5.87),
        "depl, no hard negatives": (-2.52, -2.63, -2.2, -3.59, -3.66, -1.9),
        "depl, 5 hard negatives": (-1.55, -1.19, -1.12, -3.57, -2.98, -1.32),
    },
    "Wiki10-31K": {
        "de-ret": (-3.31, -7.35, -10.74, -5.43, -4.43, -4.55),
        "depl, no classifier first": (-4.72, -8.3, -10.9, -1.56, -1.36, -1.27),
        "depl, no hard negatives": (-1.91, -5.54, -3.73, -0.25, -0.53, -0.72),
        "depl, 5 hard negatives": (-0.71, -2.77, -2.96, -0.32, -0.35, -0.27),
    },
}
# Section 3.3 says that the mean of a label's tokens does better than CLS, and prints no numbers.
WORSE_WITHOUT_NUMBERS = ("depl, CLS labels",)
