"""Log densities of the steps of a linear Gaussian chain, in sums over all steps or in statistics of each."""

from __future__ import annotations

from ..nodes.templates import LOG_2PI, template

_END = (1 / 2, "noise_precision.log_det self.n_steps"), (-1 / 2 * LOG_2PI, "self.n_steps [i]")
_END_BY_ROW = (1 / 2, "noise_precision.log_x[i] self.n_steps"), (-1 / 2 * LOG_2PI, "self.n_steps [i]")
RESIDUALS = template((-1 / 2, "noise_precision.x[ij] self.residual_xx[ij]"), *_END)
RESIDUALS_BY_ROW = template((-1 / 2, "noise_precision.x[i] self.residual_xx[ii]"), *_END_BY_ROW)
PRODUCTS = template(
    (-1 / 2, "noise_precision.x[ij] self.next_xx[ij]"),
    (1, "noise_precision.x[ij] transition.x[jk] self.pairs[ki]"),
    (-1 / 2, "noise_precision.x[ij] transition.x[ik] transition.x[jl] self.previous_xx[kl]"),
    *_END,
)
PRODUCTS_BY_ROW = template(
    (-1 / 2, "noise_precision.x[i] self.next_xx[ii]"),
    (1, "noise_precision.x[i] transition.x[ij] self.pairs[ji]"),
    (-1 / 2, "noise_precision.x[i] transition.xx[ijk] self.previous_xx[jk]"),
    *_END_BY_ROW,
)
WEIGHTED = template(
    (-1 / 2, "noise_precision.x[i] self.next_xx[ii]"),
    (1, "noise_precision.x[i] transition.x[ia] selector.x[akj] weights.x[k] self.pairs[ji]"),
    (
        -1 / 2,
        "noise_precision.x[i] transition.xx[iab] selector.x[akj] selector.x[blm] weights.xx[kl] self.previous_xx[jm]",
    ),
    *_END_BY_ROW,
)
WEIGHTED_INPUTS = template(
    (1, "noise_precision.x[i] input_weights.x[iw] inputs.x[w] self.next_x[i]"),
    (
        -1,
        "noise_precision.x[i] transition.x[ia] selector.x[akj] weights.x[k] input_weights.x[iw] inputs.x[w] "
        "self.previous_x[j]",
    ),
    (-1 / 2, "noise_precision.x[i] input_weights.xx[iwv] inputs.xx[wv] self.n_steps"),
)
SUMS_OF_INPUTS = template(
    (1, "noise_precision.x[ij] input_weights.x[jw] self.next_inputs[iw]"),
    (-1, "noise_precision.x[ij] transition.x[ik] input_weights.x[jw] self.previous_inputs[kw]"),
    (-1 / 2, "noise_precision.x[ij] input_weights.x[iw] input_weights.x[jv] self.inputs_xx[wv]"),
)
INPUTS_BY_ROW = template(
    (1, "noise_precision.x[i] input_weights.x[iw] self.next_inputs[iw]"),
    (-1, "noise_precision.x[i] transition.x[ij] input_weights.x[iw] self.previous_inputs[jw]"),
    (-1 / 2, "noise_precision.x[i] input_weights.xx[iwv] self.inputs_xx[wv]"),
)
OWN_INPUTS = template(
    (1, "noise_precision.x[ij] input_weights.x[jw] inputs.x[w] self.next_x[i]"),
    (-1, "noise_precision.x[ij] transition.x[ik] input_weights.x[jw] inputs.x[w] self.previous_x[k]"),
    (-1 / 2, "noise_precision.x[ij] input_weights.x[iw] input_weights.x[jv] inputs.xx[wv] self.n_steps"),
)
OWN_INPUTS_BY_ROW = template(
    (1, "noise_precision.x[i] input_weights.x[iw] inputs.x[w] self.next_x[i]"),
    (-1, "noise_precision.x[i] transition.x[ij] input_weights.x[iw] inputs.x[w] self.previous_x[j]"),
    (-1 / 2, "noise_precision.x[i] input_weights.xx[iwv] inputs.xx[wv] self.n_steps"),
)

OF_RESIDUALS = ("residual_xx", "n_steps")
OF_PRODUCTS = ("previous_xx", "pairs", "next_xx", "n_steps")
OF_INPUTS = ("next_inputs", "previous_inputs", "inputs_xx")
OF_OWN_INPUTS = ("next_x", "previous_x")
