"""One thread a test process: results do not depend on the machine, and parallel tests do not fight for cores."""

import os
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when scipy is imported; without it scikit-learn skips a check

import pytest
import torch

if "NASIGHT_CACHE" not in os.environ:  # once for all processes of a test run, and nothing in the user's own cache
    import atexit
    import shutil
    import tempfile

    os.environ["NASIGHT_CACHE"] = tempfile.mkdtemp(prefix="nasight-test-cache-")
    atexit.register(shutil.rmtree, os.environ["NASIGHT_CACHE"], ignore_errors=True)

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets; tests that need it skip where it is not set."""
    folder = os.environ.get("NASIGHT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("NASIGHT_DATA does not name a folder of data sets")
    return Path(folder)
