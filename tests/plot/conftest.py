"""No window opens."""

import matplotlib as mpl

mpl.use("Agg")
