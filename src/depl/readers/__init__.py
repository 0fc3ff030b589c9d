"""Reading corpora, and documents to label; writing corpora and suggested labels.

Every file is read in the same steps: ``files`` finds and opens it, ``lines`` and ``tables`` take it
apart, ``rows`` gives its rows, ``fields`` checks their values, ``problems`` collects what is wrong.
``documents`` are read one by one from there; ``corpora`` has one small module a format, and
``checks`` for what all formats share.

Examples
--------
>>> import json, pathlib, tempfile
>>> row = {"id": "d1", "text": "Rules on sparkling wine", "labels": ["2560"]}
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = pathlib.Path(folder, "train.jsonl").write_text(json.dumps(row))
...     _ = pathlib.Path(folder, "labels.jsonl").write_text('{"id": "2560", "name": "wine"}')
...     data = read(folder)
>>> data.train.texts, data.labels.names
(['Rules on sparkling wine'], ['wine'])
"""

from depl.readers.corpora import read
from depl.readers.recognising import FORMATS
from depl.readers.writing import write

__all__ = ["FORMATS", "read", "write"]
