"""Posteriors and their factors as plain values, and factors put together again from them."""

from .factors import document_of_factor, factor_of_document, shared_of_document
from .posteriors import document_of_posterior

__all__ = ["document_of_factor", "document_of_posterior", "factor_of_document", "shared_of_document"]
