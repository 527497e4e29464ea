"""Tests of blocks on a device."""
