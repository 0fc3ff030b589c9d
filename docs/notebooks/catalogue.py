"""A small catalogue to play with: made-up library records, the same every time."""

from __future__ import annotations

import random

_SUBJECTS = {
    "Wine": "grapes vineyard cellar bottling vintage fermentation barrel",
    "Cheese": "milk dairy curd rennet ripening rind pasture",
    "Beekeeping": "honey hive swarm pollen apiary queen nectar",
    "Railways": "locomotive track signalling freight station gauge timetable",
    "Shipping": "vessel port cargo harbour container crew freight",
    "Aviation": "aircraft airport runway pilot passenger flight altitude",
    "Astronomy": "telescope galaxy orbit planet star spectrum nebula",
    "Climate": "temperature warming emissions rainfall drought glacier carbon",
    "Soil": "erosion humus nutrients drainage farming clay pasture",
    "Public health": "vaccination epidemic hospital infection screening mortality nutrition",
    "Schools": "pupils teachers curriculum classroom literacy examination homework",
    "Copyright": "authors licence publishers royalties infringement piracy court",
}
_TITLES = (
    "{0} and {1}: an introduction",
    "The history of {0} and {1}",
    "A handbook on {0}, {1} and {2}",
    "On {0} and the question of {1}",
)
_SENTENCES = (
    "This book is about {0} and {1}.",
    "It shows how {0} depends on {1}, and what became of {2}.",
    "A chapter on {0} is followed by notes on {1}.",
    "With tables of {0} and a bibliography.",
)


_ALL = [word for words in _SUBJECTS.values() for word in words.split()]
_OWN = 0.4  # share of the words that are typical of the record's own subjects


def make_records(n: int = 400, seed: int = 0) -> list[dict[str, str]]:
    """Records with a title, an abstract and subjects between semicolons."""
    rng = random.Random(seed)
    records = []
    for number in range(1, n + 1):
        subjects = rng.sample(list(_SUBJECTS), rng.choice((1, 1, 2)))
        words = [word for subject in subjects for word in _SUBJECTS[subject].split()]

        def fill(template: str, words: list[str] = words) -> str:
            chosen = [rng.choice(words if rng.random() < _OWN else _ALL) for _ in range(3)]
            return template.format(*chosen)

        records.append(
            {
                "Id": f"rec{number:04}",
                "Title": fill(rng.choice(_TITLES)),
                "Abstract": " ".join(
                    fill(rng.choice(_SENTENCES)) for _ in range(rng.randint(2, 4))
                ),
                "Subjects": "; ".join(subjects),
            }
        )
    return records
