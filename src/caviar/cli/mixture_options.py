"""Options of the commands that fit mixtures: which mixture, from which start, how long, and what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .kinds import Covariance, MeanPrecision, ModelName
from .options import option

__all__ = [
    "Checkpoint",
    "Columns",
    "Components",
    "CovarianceList",
    "CovarianceType",
    "FitSeed",
    "FixedSeed",
    "HeldOut",
    "MaxIter",
    "MeanPrecisionForm",
    "Mixture",
    "Models",
    "Numbers",
    "Picture",
    "PriorMean",
    "PriorVariance",
    "Restarts",
    "RestartsEach",
    "SaveBest",
    "SaveModel",
    "Threads",
    "Tolerance",
    "Variance",
]

Columns = Annotated[str | None, option(metavar="A,B", help="Columns to fit.", default="all")]
Mixture = Annotated[
    ModelName,
    option(metavar="NAME", help="bayesian, em (maximum likelihood) or known-variance.", default="bayesian"),
]
Components = Annotated[
    str, option("--components", "-k", metavar="N", help="Number of components, or auto.", default="2")
]
Numbers = Annotated[
    str, option("--components", "-k", metavar="LIST", help="Numbers: 1-8, or 2,4,auto.", default="1-6")
]
CovarianceType = Annotated[
    Covariance | None,
    option(metavar="TYPE", help="full, tied, diag, spherical or unit covariances.", default="full"),
]
CovarianceList = Annotated[
    str, option(metavar="LIST", help="Covariances: full, tied, diag, spherical, unit.", default="full")
]
MeanPrecisionForm = Annotated[
    MeanPrecision | None,
    option(metavar="FORM", help="If bayesian: posterior joint or independent.", default="joint"),
]
Variance = Annotated[
    float | None, option(metavar="V", help="If known-variance: that of each component.", default="1")
]
PriorMean = Annotated[
    float | None, option(metavar="M", help="If known-variance: prior mean of the means.", default="0")
]
PriorVariance = Annotated[
    float | None, option(metavar="V", help="If known-variance: prior variance of the means.", default="100")
]
Restarts = Annotated[int, option(metavar="R", min=1, help="Starts; the best end is kept.", default="1")]
RestartsEach = Annotated[
    int, option(metavar="R", min=1, help="Starts of each fit; the best end is kept.", default="3")
]
MaxIter = Annotated[int, option(metavar="N", min=0, help="Most iterations of each start.", default="500")]
Tolerance = Annotated[
    float, option(metavar="T", min=0, help="Stop at a change below, in nats per row.", default="1e-6")
]
FitSeed = Annotated[
    int | None,
    option(
        metavar="S", min=0, help="The same gives the same result.", default="a new one; 0 with --checkpoint"
    ),
]
FixedSeed = Annotated[int, option(metavar="S", min=0, help="The same gives the same result.", default="0")]
Threads = Annotated[
    int | None, option(metavar="N", min=1, help="They do not change the result.", default="one a core")
]
HeldOut = Annotated[
    float | None,
    option(metavar="SHARE", help="Share of rows to hold out and judge by, such as 0.25.", default="none"),
]
Models = Annotated[
    list[Path] | None,
    option(metavar="FILE", help="A saved model, instead of new fits; several times for several."),
]
SaveModel = Annotated[Path | None, option("--output", "-o", metavar="FILE", help="Save the model: m.caviar.")]
SaveBest = Annotated[
    Path | None, option("--output", "-o", metavar="FILE", help="Save the best new fit: best.caviar.")
]
Picture = Annotated[Path | None, option(metavar="FILE", help="Draw rows and components: m.png.")]
Checkpoint = Annotated[
    Path | None,
    option(metavar="FILE", help="Keep where the fit stands; the same command again goes on from there."),
]
