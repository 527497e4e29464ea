"""Diagnostics from draws weighted by the joint density, and conversion to ArviZ."""
