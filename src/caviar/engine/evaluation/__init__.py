"""Computations after a fit."""
