"""One document on its way through a run: what it looks like at every stage.

    python experiments/follow.py RUN CORPUS --document ID [--split dev] [--text]

Prints what docs/how-it-works.md shows. Tokens and cosines are those of all-MiniLM-L6-v2 as it
comes, untrained; what a run's own encoder says is among the parts of its fusion.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import fill

import numpy as np
from scipy.sparse import csr_array

import depl
from depl.neural.encoder import encode
from depl.neural.encoder_files import DEFAULT_ENCODER, find_encoder, load_encoder
from depl.neural.retriever import unit_vectors
from depl.neural.tokens import load_tokenizer, tokenize
from depl.sparse.writing import words_in_place

BEST, TERMS, HARD, MAX_TOKENS = 6, 12, 10, 256  # labels and terms to show; depl's settings
TITLE = "title "  # what the names of parts that rank titles begin with


def main() -> None:
    """Follow a document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--document", required=True, metavar="ID")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--text", action="store_true", help="print the text and nothing else")
    args = parser.parse_args()
    corpus = depl.read(args.corpus, splits=[args.split])[args.split]
    row = corpus.ids.index(args.document)
    text = corpus.texts[row]
    if args.text:
        print(text)
        return
    model = depl.Classifier.load(args.run)
    carried = [model.labels.index(corpus.labels[int(j)].id) for j in corpus.Y[[row]].indices]
    print(f"document {args.document}: {len(text.split())} words")
    for j in carried:
        print(f"  carries {model.labels[j].name}: {model.train_counts[j]:,} training documents")
    follow = Follow(model, text, set(carried))
    follow.features()
    follow.svm()
    follow.encoder(min(carried, key=lambda j: int(model.train_counts[j]) or model.n_train))
    follow.fusion()


class Follow:
    """A document, the run it goes through, and the labels it carries in truth."""

    def __init__(self, model: depl.Classifier, text: str, carried: set[int]) -> None:
        self.model, self.text, self.carried = model, text, carried
        self.x: csr_array = model.features.transform([text])
        self.parts = model.parts([text])

    def features(self) -> None:
        """Words, lemmas, and the heaviest terms."""
        terms = [self.model.features.terms_[t] for t in self.x.indices]
        places = self.model.features.places(self.text, set(terms))
        form_at = {(a, b): word.lower() for word, a, b in words_in_place(self.text)}
        term_at = {span: term for term, spans in places.items() for span in spans}
        lemmas = {f"{form_at[at]}→{term_at[at]}" for at in term_at if form_at[at] != term_at[at]}
        gone = dict.fromkeys(form for at, form in form_at.items() if at not in term_at)
        print(f"\nfeatures: {len(form_at)} words, {len(terms)} terms")
        show("lemmas: " + " ".join(sorted(lemmas)))
        show("left out: " + " ".join(gone))
        print(f"  {'term':14} {'times':>5} {'idf':>6} {'tf-idf':>7}")
        for i in np.argsort(-self.x.data, kind="stable")[:TERMS]:
            idf = self.model.features.idf_[self.x.indices[i]]
            times = len(places.get(terms[i], ())) or "pair"  # pairs of words have no places
            print(f"  {terms[i]:14} {times:>5} {idf:6.2f} {self.x.data[i]:7.3f}")

    def svm(self) -> None:
        """The best labels by the SVM, and which terms made their scores; then those by name."""
        print(f"\nsvm: {'label':23} {'score':>5} {'bias':>5}  what the terms add")
        x, svm = self.x.toarray()[0], self.model.svm
        for j, score in best(self.parts["svm"], BEST):
            weights = csr_array(svm.weights_[[j]])
            added = weights.data * x[weights.indices]
            said = f"  {self.name(j):26} {score:+.2f} {svm.bias_[j]:+.2f}"
            for i in np.argsort(-added, kind="stable")[:3]:
                said += f"  {self.model.features.terms_[weights.indices[i]]} {added[i]:+.2f}"
            print(said)
        names = [f"{self.name(j)} {score:.2f}" for j, score in best(self.parts["names"], BEST)]
        show("names: " + ", ".join(names))

    def encoder(self, label: int) -> None:
        """A label's keywords and description, and how the encoder reads it and the document."""
        card = self.model.card(label)
        print(f"\nkeywords of {card.label.name}, {card.training_documents} training documents")
        show("  ".join(f"{term} {weight:.2f}" for term, weight in card.keywords))
        show(f"description: {card.description}")
        folder = find_encoder(DEFAULT_ENCODER)
        pieces = load_tokenizer(folder)
        pieces.no_truncation()
        read = pieces.encode(self.text)
        print(f"\ntokens: {len(read.ids)}, of which the first {MAX_TOKENS} are read")
        show(" ".join(read.tokens[:16]) + " ...")
        show(" ".join(map(str, read.ids[:16])) + " ...")
        show("description: " + " ".join(pieces.encode(card.description).tokens))
        wrong = [j for j, _ in best(self.parts["svm"], 100) if j not in self.carried][:HARD]
        show("hard negatives: " + ", ".join(self.name(j) for j in wrong))
        encoder = load_encoder(folder)
        texts = ([self.text], self.model.labels.names, self.model.descriptions)
        tokens = [tokenize(some, folder, MAX_TOKENS) for some in texts]
        document = unit_vectors(encode(encoder, tokens[0], "document"))[0]
        cosines = [unit_vectors(encode(encoder, x, "label")) @ document for x in tokens[1:]]
        print(f"\nuntrained encoder: {'label':14}{'by name':>16}{'by description':>16}")
        for j in [*sorted(self.carried), *wrong[:3]]:
            places = [f"{c[j]:.2f}, no. {1 + np.count_nonzero(c > c[j])}" for c in cosines]
            print(f"  {self.name(j):31}" + "".join(f"{place:>16}" for place in places))

    def fusion(self) -> None:
        """What every part says of the likeliest labels, and what the fusion makes of it."""
        found = best(self.model.predict([self.text], BEST), BEST)
        titles = {part: x for part, x in self.parts.items() if part.startswith(TITLE)}
        whole = {part: x for part, x in self.parts.items() if part not in titles}
        widths = {part: max(14, len(part) + 2) for part in whole}
        heads = "".join(f"{part:>{width}}" for part, width in widths.items())
        print(f"\nfusion: {'label':18} documents{heads}  probability")
        for j, p in found:
            said = "".join(f"{place(x, j):>{widths[part]}}" for part, x in whole.items())
            print(f"  {self.name(j):26} {self.model.train_counts[j]:7,}{said} {p:12.2f}")
        if titles:
            heads = "".join(f"{part.removeprefix(TITLE):>15}" for part in titles)
            print(f"\nby the title alone: {'label':16}{heads}")
            for j, _ in found:
                print(
                    f"  {self.name(j):34}" + "".join(f"{place(x, j):>15}" for x in titles.values())
                )

    def name(self, label: int) -> str:
        """A label's name, with a tick if the document carries it."""
        return self.model.labels[label].name + (" ✓" if label in self.carried else "")


def best(ranking: depl.Ranking, k: int) -> list[tuple[int, float]]:
    """The k best labels of the only row of a ranking, and their scores."""
    pairs = zip(ranking.indices[0, :k].tolist(), ranking.scores[0, :k].tolist(), strict=True)
    return [(j, score) for j, score in pairs if j >= 0]


def place(ranking: depl.Ranking, label: int) -> str:
    """Score and place of a label in the only row of a ranking."""
    at = np.flatnonzero(ranking.indices[0] == label)
    return f"{ranking.scores[0, at[0]]:.2f}, no. {at[0] + 1}" if len(at) else "-"


def show(text: str) -> None:
    """Print a paragraph."""
    print(fill(text, 92, initial_indent="  ", subsequent_indent="    "))


if __name__ == "__main__":
    main()
