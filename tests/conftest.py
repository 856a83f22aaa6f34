"""One thread a test process: results do not depend on the machine, and parallel tests do not fight for cores."""

import os
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when scipy is imported; without it scikit-learn skips a check

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets; tests that need it skip where it is not set."""
    folder = os.environ.get("NASIGHT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("NASIGHT_DATA does not name a folder of data sets")
    return Path(folder)
