"""A user's own model with `Choice`s in it."""

from nasight.spaces.module._choice import Choice
from nasight.spaces.module._file import from_file
from nasight.spaces.module._space import ModuleSpace

__all__ = ["Choice", "ModuleSpace", "from_file"]
