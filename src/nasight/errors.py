"""What a caller can meet: exceptions and a warning, each one sentence that names the value and what would be right."""


class RequestError(ValueError):
    """The request is wrong (a bad value, a missing file): the command line exits with 2."""


class RunError(RuntimeError):
    """The request was fine but the work failed (a full disk, a diverged loss): the command line exits with 1."""


class DataWarning(UserWarning):
    """A part of the data was left out (photos that cannot be read); commands print its text as a line."""
