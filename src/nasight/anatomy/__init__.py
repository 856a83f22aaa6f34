"""What kind of cells a search picks, and why they train fast."""

from nasight.anatomy import theory
from nasight.anatomy._distribution import CellDistribution, Standing, distribution, nasbench201_distribution, space_of
from nasight.anatomy._hessian import HessianSpectrum, hessian_spectrum
from nasight.anatomy._landscape import Landscape, landscape
from nasight.anatomy._landscape_job import LandscapeRun, landscape_run
from nasight.anatomy._read import Design, names, read_cells
from nasight.anatomy._variance import gradient_variance
from nasight.anatomy._variants import VariantCount, count_variants, narrowest, variants, widest
from nasight.spaces import CellGraph

__all__ = [
    "CellDistribution",
    "CellGraph",
    "Design",
    "HessianSpectrum",
    "Landscape",
    "LandscapeRun",
    "Standing",
    "VariantCount",
    "count_variants",
    "distribution",
    "gradient_variance",
    "hessian_spectrum",
    "landscape",
    "landscape_run",
    "names",
    "narrowest",
    "nasbench201_distribution",
    "read_cells",
    "space_of",
    "theory",
    "variants",
    "widest",
]
