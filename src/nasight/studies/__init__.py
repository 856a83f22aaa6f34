"""Workflows that join the pillars: search, find, explain, rank, retrain, compare, reproduce, export, predict."""

from nasight.studies._adapted import AccuracyRow, AdaptedComparison, AdaptedRow, compare_adapted
from nasight.studies._command import command_of
from nasight.studies._convergence import CellRow, Comparison, compare_cells
from nasight.studies._deepen import deepen
from nasight.studies._explain import Explanation, explain
from nasight.studies._export import Exportable, exportable, write_export
from nasight.studies._folder_name import folder_name
from nasight.studies._model import Model, Prediction
from nasight.studies._model_card import ModelCard
from nasight.studies._model_folder import load_model, write_model
from nasight.studies._page import Subject, run_page
from nasight.studies._protocol import Protocol
from nasight.studies._rank import RankedSample, rank
from nasight.studies._report import Report, report, write_page
from nasight.studies._retrain import resolved, retrain
from nasight.studies._search import resume, search
from nasight.studies._simulate import ClusterStanding, Simulation, simulate
from nasight.studies._train import Trainable, trainable
from nasight.studies._train_found import train_found
from nasight.studies._train_free import TRAIN_FREE_METHODS, train_free_search
from nasight.studies._trained_cell import trained_cell
from nasight.studies._trained_model import trained_model
from nasight.studies.finding import (
    Answer,
    Difference,
    PlannedFind,
    Point,
    find,
    find_plan,
    read_budget,
    resume_find,
    time_text,
)
from nasight.studies.reproducing import (
    CLAIMS,
    Claim,
    Finding,
    InsideInterval,
    Judgment,
    NoViolation,
    Reproduction,
    Rule,
    Within,
    reproduce,
)

__all__ = [
    "CLAIMS",
    "TRAIN_FREE_METHODS",
    "AccuracyRow",
    "AdaptedComparison",
    "AdaptedRow",
    "Answer",
    "CellRow",
    "Claim",
    "ClusterStanding",
    "Comparison",
    "Difference",
    "Explanation",
    "Exportable",
    "Finding",
    "InsideInterval",
    "Judgment",
    "Model",
    "ModelCard",
    "NoViolation",
    "PlannedFind",
    "Point",
    "Prediction",
    "Protocol",
    "RankedSample",
    "Report",
    "Reproduction",
    "Rule",
    "Simulation",
    "Subject",
    "Trainable",
    "Within",
    "command_of",
    "compare_adapted",
    "compare_cells",
    "deepen",
    "explain",
    "exportable",
    "find",
    "find_plan",
    "folder_name",
    "load_model",
    "rank",
    "read_budget",
    "report",
    "reproduce",
    "resolved",
    "resume",
    "resume_find",
    "retrain",
    "run_page",
    "search",
    "simulate",
    "time_text",
    "train_found",
    "train_free_search",
    "trainable",
    "trained_cell",
    "trained_model",
    "write_export",
    "write_model",
    "write_page",
]
