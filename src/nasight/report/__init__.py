"""Values in, SVG and HTML out: drawings of searches, cells and landscapes, and the page that reports on a run."""

from nasight.report._adapted import accuracies_svg
from nasight.report._cell import cell_svg, design_svg
from nasight.report._curves import ComparedCells, curves_svg
from nasight.report._landscape import contour_svg, heat_map_svg, landscape_pictures, surface, variance_svg
from nasight.report._page import page
from nasight.report._panels import Panel, Series, panels_svg
from nasight.report._picture import picture
from nasight.report._race import race_headline, race_page, race_rows, race_text
from nasight.report._section import Chart, Section
from nasight.report._simulation import simulation_svg, simulation_text
from nasight.report._svg import COLORS
from nasight.report.sections import SECTIONS, register

__all__ = [
    "COLORS",
    "SECTIONS",
    "Chart",
    "ComparedCells",
    "Panel",
    "Section",
    "Series",
    "accuracies_svg",
    "cell_svg",
    "contour_svg",
    "curves_svg",
    "design_svg",
    "heat_map_svg",
    "landscape_pictures",
    "page",
    "panels_svg",
    "picture",
    "race_headline",
    "race_page",
    "race_rows",
    "race_text",
    "register",
    "simulation_svg",
    "simulation_text",
    "surface",
    "variance_svg",
]
