"""Every kind of factor that several variables share, by the name of its kind in files."""

from collections.abc import Mapping

from caviar.families._shared import SharedFactor
from caviar.families.coupled_normals import CoupledNormals
from caviar.families.gated_globals import GatedGlobals

SHARED: Mapping[str, type[SharedFactor]] = {own.kind: own for own in (CoupledNormals, GatedGlobals)}
"""Kind -> class."""
