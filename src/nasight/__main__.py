"""`python -m nasight`."""

from nasight.cli import main

main()
