"""Boosted regression trees on encoded rows: exact sums, whatever the order of rows.

Bin the columns once per table, then fit any number of models on it::

    table = BinnedColumns.of(rows)                          # rows: EncodedRows of training
    inputs = screen(table, response, candidates, rows=some) # the columns worth using, at most 16
    model = BoostedTrees().fit(table, response, inputs=inputs, rows=some)
    model.predict(other.descent)                            # (n_rows,), in units of the response

``response`` has one float per row of the table; ``rows`` are the positions to fit on, so that folds
share one table. ``predict`` takes the descent codes of all columns and looks up its own inputs;
``predict_each`` gives what several models predict, in less time than one after the other, and
``predict_some`` what each predicts of some rows.
``pack_boosted`` and ``unpack_boosted`` turn a model into plain arrays and back, for saved files.
"""

from .arrays import pack_boosted, unpack_boosted
from .bins import MAX_BINS, BinnedColumns
from .screening import screen
from .trees import BoostedTrees, predict_each, predict_some

__all__ = [
    "MAX_BINS",
    "BinnedColumns",
    "BoostedTrees",
    "pack_boosted",
    "predict_each",
    "predict_some",
    "screen",
    "unpack_boosted",
]
