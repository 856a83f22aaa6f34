"""Kills, faults, bad inputs and strangers: what nasight must survive. `make faults` runs all of it."""
