"""Schedules: an object each."""
