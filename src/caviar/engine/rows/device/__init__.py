"""Blocks of rows on a device."""
