"""Paragraphs of docstrings that several estimators share, each written once: here, below its name in brackets.

A line ``{name}`` in a docstring is the place of the paragraph with this name; the decorator puts it there.

[tol]
tol
    The fit has converged when an iteration changes the objective by less than this, in nats per row.

[max_iter]
max_iter
    Largest number of iterations for each start. The passes that find the start do not count.

[n_init]
n_init
    Number of starts; the best fit is kept.

[random_state]
random_state
    Seed of the starts and of :meth:`sample`: a whole number, a Generator or a RandomState.

[n_jobs]
n_jobs
    Number of threads; with None or -1, one for each core that this process may use. The result does not depend on it.

[executor]
executor
    Where blocks of rows are processed, as for :meth:`caviar.Model.fit`: a :class:`caviar.DaskExecutor`, or the address
    of a Dask scheduler. The result does not depend on it.

[verbose]
verbose
    By default a fit of more than 5 seconds shows one line that changes, if standard error is a terminal, and in
    notebooks. True prints a line for each iteration, False nothing. A function is called with the
    :class:`caviar.Progress` of each iteration.

[uncertainty]
uncertainty
    Which standard deviations and intervals the fit shows, as for :meth:`caviar.Model.fit`. ``"auto"``: those of the
    posterior integrated over a few parameters, if that is quick; else those of second order, or with more numbers of
    linear response, if that costs at most as much as the fit; else mean field, as for points. ``"linear_response"``:
    computed at the end of the fit; for points these are standard errors. ``"second_order"``: means are corrected,
    too, for few rows. ``"integrated"``: integrated over one or two parameters, whatever that costs. ``"mean_field"``:
    those of the factors.

[responsibilities]
responsibilities
    Average number of components that a row may belong to during the fit, as for :meth:`caviar.Model.fit`: a whole
    number, ``"all"``, or ``"auto"``, which is 16 for large tables with 200 components or more, and all otherwise. The
    last pass uses all components.

[swaps]
swaps
    Whether a converged fit tries swaps, as for :meth:`caviar.Model.fit`: a swap merges two components and splits
    another in two. False tries none. True continues as long as swaps raise the objective. ``"auto"`` tries them once,
    for 8 to 199 components if no start is given, and takes at most one and a half times the passes of the fit.

[semi_supervised]
semi_supervised
    Whether ``y`` gives the components of some rows: 0 to K - 1, and -1 where the component is unknown. With False,
    ``y`` is ignored. With True, ``fit`` needs such a ``y``, so scikit-learn tools that fit without labels, or with
    other classes, fail.

[warm_start]
warm_start
    Whether a fit continues where the last one ended.

[columns]
n_features_in_, feature_names_in_
    Number of columns, and their names if ``X`` had names.

[X]
X
    Rows, shape (N, D); NaN marks missing entries. An array, or a table of pandas, Polars or Arrow. Tables of
    :func:`caviar.scan` and Dask arrays and DataFrames are read in blocks and need not fit in memory.

[sample_weight]
sample_weight
    Weight of each row, shape (N,), not negative. A row of weight 2 counts as two equal rows. By default all weights are
    1. (If a table is so large that components are updated after each batch of rows, the optimum also depends on which
    rows share a batch.)

[checkpoint]
checkpoint
    Path of a file that keeps the state of the fit, as for :meth:`caviar.Model.fit`. After an interruption, the same
    call on an estimator with the same arguments continues from there, including all starts and the search for the
    number of components. It needs a ``random_state``.
checkpoint_every
    Seconds between two writes of the file; 0 writes it after every iteration.

[end_of_fit]

Returns
-------
self

Raises
------
ValueError
    If the data or an argument is invalid; the message says what was expected.

Warns
-----
ConvergenceWarning
    If ``max_iter`` was reached before the fit converged, or the fit was interrupted.
CollapseWarning
    If every start ended with a component that has (almost) no data.

[partial_fit]
The first call is a fit. Later calls do not assign earlier rows again, so the order of the rows matters,
and the first call should contain rows of every component. ``elbo_`` is that of the rows of the last call.

[sample]
n_samples
    Number of rows.
random_state
    Seed: a whole number, a Generator or a RandomState. The same number gives the same rows. By default each call gives
    new rows, and the first call after a fit is determined by the estimator's own ``random_state``.
"""

from __future__ import annotations

import re
from textwrap import indent
from typing import TypeVar

T = TypeVar("T", bound=type)

_PLACE = re.compile(r"^(?P<margin> *)\{(?P<name>\w+)\}$", re.MULTILINE)
_NAME = re.compile(r"^\[(\w+)\]\n", re.MULTILINE)

# without docstrings (python -OO) there is nothing to be put anywhere
_PARTS = _NAME.split(__doc__ or "")
PARAGRAPHS = {name: text.strip("\n") for name, text in zip(_PARTS[1::2], _PARTS[2::2], strict=True)}
"""Name -> paragraph."""


def with_paragraphs(text: str) -> str:
    """Return a docstring with the shared paragraphs in their places.

    Examples
    --------
    >>> print(with_paragraphs("    {max_iter}"))
        max_iter
            Largest number of iterations for each start. The passes that find the start do not count.
    """
    return _PLACE.sub(lambda match: indent(PARAGRAPHS[match["name"]], match["margin"]), text)


def documented(cls: T) -> T:
    """Put the shared paragraphs into the docstrings of a class and of its methods."""
    for own in (cls, *vars(cls).values()):
        text = getattr(own, "__doc__", None)
        if isinstance(text, str) and _PLACE.search(text):
            own.__doc__ = with_paragraphs(text)
    return cls
