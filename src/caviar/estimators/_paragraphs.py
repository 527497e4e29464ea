"""Paragraphs of docstrings that several estimators share, each written once: here, below its name in brackets.

A line ``{name}`` in a docstring is the place of the paragraph with this name; the decorator puts it there.

[tol]
tol
    The fit has converged when an iteration changes the objective by less than this, in nats per row.

[max_iter]
max_iter
    Largest number of iterations of each start, without the passes that find the start.

[n_init]
n_init
    Number of starts; the best fit is kept.

[random_state]
random_state
    Whole number, Generator or RandomState, for the starts and for :meth:`sample`.

[n_jobs]
n_jobs
    Number of threads; None or -1 for one on each core that this process may use. It does not change the result.

[executor]
executor
    Where blocks of rows are processed, as for :meth:`caviar.Model.fit`: a :class:`caviar.DaskExecutor`, or the
    address of a Dask scheduler. It does not change the result.

[verbose]
verbose
    Whether to print a line on each iteration; or a function that is called with the progress of each.

[uncertainty]
uncertainty
    Which standard deviations and intervals the fit shows, as for :meth:`caviar.Model.fit`: ``"linear_response"``
    computes them at the end of the fit, for points as standard errors; ``"second_order"`` also corrects means, for few
    rows; ``"mean_field"`` takes those of the factors; ``"auto"`` takes second order or, of more numbers, linear
    response, if it costs at most as much as the fit, but not for points.

[responsibilities]
responsibilities
    How many components a row may belong to during the fit, on average, as for :meth:`caviar.Model.fit`: a whole number,
    ``"all"``, or ``"auto"``, which takes 16 for large tables with 200 components or more. The last pass uses all
    components.

[swaps]
swaps
    Whether a converged fit tries to merge two components and split another one in two, as for
    :meth:`caviar.Model.fit`: False; True, as long as that raises the objective; or ``"auto"``, once, for 8 components
    or more if no start is given, with at most one and a half times the passes of the fit.

[semi_supervised]
semi_supervised
    Whether ``y`` has labels 0 to K - 1 for some rows, and -1 for the others. False ignores ``y``. With True a fit needs
    such a ``y``, so tools of scikit-learn that fit without labels, or with other classes, do not work with it.

[warm_start]
warm_start
    Whether a fit continues where the last one ended.

[columns]
n_features_in_, feature_names_in_
    Number of columns; their names if ``X`` had any.

[X]
X
    Rows, shape (N, D); NaN where an entry is missing. An array, a table of pandas, Polars or Arrow, or one that
    is read in blocks and need not fit in memory: of :func:`caviar.scan`, or a Dask array or DataFrame.

[sample_weight]
sample_weight
    Weight of each row, shape (N,), not negative; a weight of 2 equals the row twice. None gives each row the weight 1.
    (In tables so large that components are updated after each batch of rows, the optimum also depends on which rows
    share a batch.)

[checkpoint]
checkpoint
    Path of a file that keeps the state of the fit, as for :meth:`caviar.Model.fit`: the same call on an
    estimator with the same arguments continues from there, with all starts and all fits of a search for the number
    of components. It needs a ``random_state``.
checkpoint_every
    Seconds between two writings of the file; 0 writes it after every iteration.

[end_of_fit]

Returns
-------
self

Raises
------
ValueError
    If the data or an argument are impossible; the message says what was expected.

Warns
-----
ConvergenceWarning
    If ``max_iter`` was reached before the fit converged, or the fit was interrupted.
CollapseWarning
    If every start ended with a component on (almost) no data.

[partial_fit]
The first call is a fit. Later calls do not change the components of earlier rows, so the order of the rows matters,
and the first call should have rows of every component. ``elbo_`` is that of the last rows.

[sample]
n_samples
    Number of rows.
random_state
    Whole number, Generator or RandomState: the same number gives the same rows. By default each call gives new
    rows; the first call after a fit follows from the estimator's own ``random_state``.
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
            Largest number of iterations of each start, without the passes that find the start.
    """
    return _PLACE.sub(lambda match: indent(PARAGRAPHS[match["name"]], match["margin"]), text)


def documented(cls: T) -> T:
    """Put the shared paragraphs into the docstrings of a class and of its methods."""
    for own in (cls, *vars(cls).values()):
        text = getattr(own, "__doc__", None)
        if isinstance(text, str) and _PLACE.search(text):
            own.__doc__ = with_paragraphs(text)
    return cls
