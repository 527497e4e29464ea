"""Diagnostics from draws weighted by the joint density, and conversion to ArviZ."""

from .cross_validation import results_without
from .diagnosis import GOOD, USABLE, Diagnosis, diagnosis_of, refuse_what_has_no_weights
from .inference_data import inference_data

__all__ = [
    "GOOD",
    "USABLE",
    "Diagnosis",
    "diagnosis_of",
    "inference_data",
    "refuse_what_has_no_weights",
    "results_without",
]
