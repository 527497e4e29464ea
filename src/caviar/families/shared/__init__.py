"""Factors that several global variables share: every kind of them, by the name of its kind in files."""

from collections.abc import Mapping

from caviar.families.shared.coupled_normals import CoupledNormals
from caviar.families.shared.gated_globals import GatedGlobals
from caviar.families.shared.shared_factor import SharedFactor

SHARED: Mapping[str, type[SharedFactor]] = {own.kind: own for own in (CoupledNormals, GatedGlobals)}
"""Kind -> class."""
