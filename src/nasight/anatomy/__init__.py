"""What kind of cells a search picks, and why they train fast."""

from nasight.anatomy._convergence import Comparison, compare
from nasight.anatomy._curves import Protocol, Training, train_curve
from nasight.anatomy._distribution import Distribution, Standing, distribution, nasbench201_distribution, space_of
from nasight.anatomy._graph import CellGraph
from nasight.anatomy._read import Design, names, read_cells
from nasight.anatomy._trained import trained
from nasight.anatomy._variants import VariantCount, count_variants, narrowest, variants, widest

__all__ = [
    "CellGraph",
    "Comparison",
    "Design",
    "Distribution",
    "Protocol",
    "Standing",
    "Training",
    "VariantCount",
    "compare",
    "count_variants",
    "distribution",
    "names",
    "narrowest",
    "nasbench201_distribution",
    "read_cells",
    "space_of",
    "train_curve",
    "trained",
    "variants",
    "widest",
]
