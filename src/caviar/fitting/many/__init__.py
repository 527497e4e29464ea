"""Many fits of one statement in one call: tables by group, batches of groups, and their results."""

from .fit_many import fit_many
from .fits import ManyFits
from .kinds import ManyStatements

__all__ = ["ManyFits", "ManyStatements", "fit_many"]
