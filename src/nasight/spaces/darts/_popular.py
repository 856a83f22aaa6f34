"""Published cells that papers compare with, as `operation~input` of each node in turn, two per node.

Node 2 comes first; inputs 0 and 1 are the two preceding cells. `> 4,5,6` names the nodes that are joined into
the output where these are not all intermediate nodes.

NASNet-A: Zoph et al., 2018. AmoebaNet-A: Real et al., 2019. ENAS: Pham et al., 2018. DARTS (first and second
order): Liu et al., 2019. SNAS (mild constraint): Xie et al., 2019. PC-DARTS: Xu et al., 2020. GAEA PC-DARTS: Li
et al., 2021.
"""

POPULAR: dict[str, tuple[str, str]] = {
    "NASNet": (
        "sep_conv_5x5~1 sep_conv_3x3~0 sep_conv_5x5~0 sep_conv_3x3~0 avg_pool_3x3~1 skip_connect~0 "
        "avg_pool_3x3~0 avg_pool_3x3~0 sep_conv_3x3~1 skip_connect~1",
        "sep_conv_5x5~1 sep_conv_7x7~0 max_pool_3x3~1 sep_conv_7x7~0 avg_pool_3x3~1 sep_conv_5x5~0 "
        "skip_connect~3 avg_pool_3x3~2 sep_conv_3x3~2 max_pool_3x3~1 > 4,5,6",
    ),
    "AmoebaNet": (
        "avg_pool_3x3~0 max_pool_3x3~1 sep_conv_3x3~0 sep_conv_5x5~2 sep_conv_3x3~0 avg_pool_3x3~3 "
        "sep_conv_3x3~1 skip_connect~1 skip_connect~0 avg_pool_3x3~1 > 4,5,6",
        "avg_pool_3x3~0 sep_conv_3x3~1 max_pool_3x3~0 sep_conv_7x7~2 sep_conv_7x7~0 avg_pool_3x3~1 "
        "max_pool_3x3~0 max_pool_3x3~1 conv_7x1_1x7~0 sep_conv_3x3~5 > 3,4,6",
    ),
    "ENAS": (
        "sep_conv_3x3~1 skip_connect~1 sep_conv_5x5~1 skip_connect~0 avg_pool_3x3~0 sep_conv_3x3~1 "
        "sep_conv_3x3~0 avg_pool_3x3~1 sep_conv_5x5~1 avg_pool_3x3~0",
        "sep_conv_5x5~0 avg_pool_3x3~1 sep_conv_3x3~1 avg_pool_3x3~1 sep_conv_3x3~1 avg_pool_3x3~1 "
        "sep_conv_5x5~4 avg_pool_3x3~1 sep_conv_3x3~5 sep_conv_5x5~0 > 2,3,6",
    ),
    "DARTS_V1": (
        "sep_conv_3x3~1 sep_conv_3x3~0 skip_connect~0 sep_conv_3x3~1 skip_connect~0 sep_conv_3x3~1 "
        "sep_conv_3x3~0 skip_connect~2",
        "max_pool_3x3~0 max_pool_3x3~1 skip_connect~2 max_pool_3x3~0 max_pool_3x3~0 skip_connect~2 "
        "skip_connect~2 avg_pool_3x3~0",
    ),
    "DARTS_V2": (
        "sep_conv_3x3~0 sep_conv_3x3~1 sep_conv_3x3~0 sep_conv_3x3~1 sep_conv_3x3~1 skip_connect~0 "
        "skip_connect~0 dil_conv_3x3~2",
        "max_pool_3x3~0 max_pool_3x3~1 skip_connect~2 max_pool_3x3~1 max_pool_3x3~0 skip_connect~2 "
        "skip_connect~2 max_pool_3x3~1",
    ),
    "SNAS": (
        "sep_conv_3x3~0 sep_conv_3x3~1 skip_connect~0 dil_conv_3x3~1 skip_connect~0 skip_connect~1 "
        "skip_connect~0 sep_conv_3x3~1",
        "max_pool_3x3~0 max_pool_3x3~1 skip_connect~2 max_pool_3x3~1 max_pool_3x3~1 skip_connect~2 "
        "dil_conv_5x5~2 max_pool_3x3~0",
    ),
    "PC_DARTS_cifar10": (
        "sep_conv_3x3~1 skip_connect~0 sep_conv_3x3~0 dil_conv_3x3~1 sep_conv_5x5~0 sep_conv_3x3~1 "
        "avg_pool_3x3~0 dil_conv_3x3~1",
        "sep_conv_5x5~1 max_pool_3x3~0 sep_conv_5x5~1 sep_conv_5x5~2 sep_conv_3x3~0 sep_conv_3x3~3 "
        "sep_conv_3x3~1 sep_conv_3x3~2",
    ),
    "PC_DARTS_imagenet": (
        "skip_connect~1 sep_conv_3x3~0 sep_conv_3x3~0 skip_connect~1 sep_conv_3x3~1 sep_conv_3x3~3 "
        "sep_conv_3x3~1 dil_conv_5x5~4",
        "sep_conv_3x3~0 skip_connect~1 dil_conv_5x5~2 max_pool_3x3~1 sep_conv_3x3~2 sep_conv_3x3~1 "
        "sep_conv_5x5~0 sep_conv_3x3~3",
    ),
    "GAEA_PC_DARTS_cifar10": (
        "sep_conv_3x3~1 skip_connect~0 sep_conv_3x3~1 skip_connect~2 sep_conv_3x3~1 sep_conv_3x3~2 "
        "sep_conv_3x3~0 dil_conv_3x3~4",
        "max_pool_3x3~0 max_pool_3x3~1 sep_conv_5x5~0 sep_conv_5x5~2 dil_conv_3x3~3 sep_conv_5x5~2 "
        "sep_conv_5x5~4 sep_conv_3x3~1",
    ),
    "GAEA_PC_DARTS_imagenet": (
        "skip_connect~1 skip_connect~0 sep_conv_3x3~2 sep_conv_3x3~1 sep_conv_5x5~2 sep_conv_3x3~0 "
        "sep_conv_5x5~3 sep_conv_5x5~2",
        "max_pool_3x3~1 sep_conv_3x3~0 sep_conv_5x5~1 dil_conv_5x5~2 sep_conv_3x3~1 sep_conv_3x3~3 "
        "sep_conv_5x5~1 max_pool_3x3~2",
    ),
}
PAPERS = {
    "NASNet": "Zoph et al. 2018",
    "AmoebaNet": "Real et al. 2019",
    "ENAS": "Pham et al. 2018",
    "DARTS_V1": "Liu et al. 2019",
    "DARTS_V2": "Liu et al. 2019",
    "SNAS": "Xie et al. 2019",
    "PC_DARTS_cifar10": "Xu et al. 2020",
    "PC_DARTS_imagenet": "Xu et al. 2020",
    "GAEA_PC_DARTS_cifar10": "Li et al. 2021",
    "GAEA_PC_DARTS_imagenet": "Li et al. 2021",
}
"""Where each was published."""
FOUND_BY = {
    "DARTS_V1": "darts",
    "DARTS_V2": "darts-2nd",
    "SNAS": "snas",
    "PC_DARTS_cifar10": "pc-darts",
    "PC_DARTS_imagenet": "pc-darts",
    "GAEA_PC_DARTS_cifar10": "gaea-pc-darts",
    "GAEA_PC_DARTS_imagenet": "gaea-pc-darts",
}
"""The method that found each, where it is one of this library's."""
IMAGENET_CELLS = ("DARTS_V2", "PC_DARTS_cifar10", "PC_DARTS_imagenet", "GAEA_PC_DARTS_imagenet")
"""Searched on ImageNet or transferred to it, and published with the parameters of 48 channels and 14 cells."""
