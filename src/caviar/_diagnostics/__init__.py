"""Draws of a posterior weighed against the joint density, and handed over to ArviZ."""

from .diagnosis import Diagnosis, diagnosis_of
from .inference_data import inference_data

__all__ = ["Diagnosis", "diagnosis_of", "inference_data"]
