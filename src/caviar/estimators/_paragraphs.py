"""Paragraphs of docstrings that several estimators share, each written once: here, below its name in brackets.

A line ``{name}`` in a docstring is the place of the paragraph with this name; the decorator puts it there.

[tol]
tol
    The fit has converged when an iteration changes the objective by less than this, in nats per row.

[max_iter]
max_iter
    Largest number of iterations of each start; the sweeps by which it is found are not counted.

[n_init]
n_init
    Number of starts; the best end is kept.

[random_state]
random_state
    Whole number, Generator or RandomState: of the starts, and of :meth:`sample`.

[n_jobs]
n_jobs
    Number of threads; None or -1 for one on each core that this process may use. It does not change the result.

[executor]
executor
    Where blocks of rows are mapped instead, as for :meth:`caviar.Model.fit`: a :class:`caviar.DaskExecutor`, or the
    address of a Dask scheduler. It does not change the result.

[verbose]
verbose
    Whether to print a line on each iteration; or a function that is called with the progress of each.

[uncertainty]
uncertainty
    Which standard deviations and intervals the fit shows, as for :meth:`caviar.Model.fit`: ``"linear_response"``
    computes them at the end of the fit, for points as standard errors; ``"second_order"`` also corrects means, for few
    rows; ``"mean_field"`` takes those of the factors; ``"auto"`` takes linear response if it costs at most as much as
    the fit, but not for points.

[responsibilities]
responsibilities
    How many components a row may belong to while the fit goes on, as a mean, as for :meth:`caviar.Model.fit`: a whole
    number, ``"all"``, or ``"auto"``, which takes few where components are 200 or more and passes take long. A last pass
    has all of them.

[swaps]
swaps
    Whether a fit that has settled goes on from where two components merged and another one cut in two lead, as for
    :meth:`caviar.Model.fit`: False, True for as long as that leads higher, or ``"auto"``, which looks for it once, from
    8 components on where no start is given, with at most one and a half times the passes of the fit until then.

[semi_supervised]
semi_supervised
    Whether ``y`` holds labels of 0 to K - 1 for some rows, and -1 for the others. False ignores ``y``. With True a
    fit needs such a ``y``, and refuses other ones: tools of scikit-learn that fit without labels, or with other
    classes, do not take it. The rest of the contract holds.

[warm_start]
warm_start
    Whether a fit goes on where the last one ended.

[columns]
n_features_in_, feature_names_in_
    Number of columns; their names if ``X`` had any.

[X]
X
    Rows, shape (N, D); NaN where an entry is missing. An array, a table of pandas, Polars or Arrow, or one that
    is read in blocks and need not fit in memory: of :func:`caviar.scan`, or a Dask array or DataFrame.

[sample_weight]
sample_weight
    Weight of each row, shape (N,), not negative; 2 is the row twice, from the start on. None weighs each row 1.
    (In tables so large that components are updated after each of several batches of rows the optimum that is
    reached depends on which rows share a batch, and so on repetitions and order, too.)

[checkpoint]
checkpoint
    Path of a file that keeps the state of the fit, as for :meth:`caviar.Model.fit`: the same call on an
    estimator with the same arguments goes on from there, whatever it fits: all starts, and all fits of a search
    for the number of components. It needs a ``random_state``.
checkpoint_every
    Seconds between two writings of it; 0 writes it after every iteration.

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
The first call is a fit. The components that earlier rows were given to stay as they were found, so the order of
the rows matters, and the first ones should have rows of every component. ``elbo_`` is that of the last rows.

[sample]
n_samples
    How many.
random_state
    Whole number, Generator or RandomState: the same number gives the same rows. By default the draws go on
    where the last call ended, so that calls do not repeat each other; the first call after a fit
    follows from the estimator's own ``random_state``.
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
            Largest number of iterations of each start; the sweeps by which it is found are not counted.
    """
    return _PLACE.sub(lambda match: indent(PARAGRAPHS[match["name"]], match["margin"]), text)


def documented(cls: T) -> T:
    """Put the shared paragraphs into the docstrings of a class and of its methods."""
    for own in (cls, *vars(cls).values()):
        text = getattr(own, "__doc__", None)
        if isinstance(text, str) and _PLACE.search(text):
            own.__doc__ = with_paragraphs(text)
    return cls
