"""What each file that nasight writes holds: the one description that every reader checks a file against.

Keys that are not listed are left alone, so that files of other versions stay readable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=0, lt=2**53)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=1, lt=2**31)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Options = dict[str, Any]
Weights = dict[str, list[float] | list[list[float]]]


class File(BaseModel):
    """A file, or a part of one, as it stands there: nothing is converted, and numbers are finite."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class DataPart(File):
    """What run.json keeps of the data."""

    name: str
    fingerprint: str
    inputs: Annotated[list[Size], Field(max_length=8)] = []
    classes: Annotated[list[str], Field(max_length=2**20)] = []


class NetworkData(DataPart):
    """The data of a run that has a network: the shape of an example, and a name for each output."""

    inputs: Annotated[list[Size], Field(min_length=1, max_length=8)]
    classes: Annotated[list[str], Field(min_length=1, max_length=2**20)]


class RunFile(File):
    """run.json: what was asked for."""

    format: int
    kind: str
    created: str
    versions: dict[str, str] = {}
    settings: Options = {}
    sources: dict[str, Digest] = {}
    """Code of the user's own that the run was made with: "FILE.py:NAME" -> the checksum of its file."""
    own: dict[str, str] = {}
    """Functions of the user's own: loss, metric, optimizer, augment -> their names."""
    own_sources: dict[str, Digest] = {}
    """The same -> the checksums of their files."""


class WithSettings(RunFile):
    settings: Options


class WithData(WithSettings):
    data: DataPart


class SearchFile(WithSettings):
    """run.json of a search."""

    data: NetworkData


class TrainFile(WithSettings):
    """run.json of a training."""

    data: NetworkData
    space: str
    architecture: str
    seed: Count
    threads: Size
    slices: Size = 1
    space_options: Options = {}


class HistoryPart(File):
    """The part of history.jsonl that belongs to a checkpoint."""

    rows: Count
    bytes: Count
    sha256: Digest


class CheckpointPart(File):
    """One checkpoint."""

    checkpoint: Annotated[str, Field(pattern=r"^checkpoint-[\w-]+\.pt$")]
    sha256: Digest
    mark: str = ""
    history: HistoryPart | None = None


class StateFile(CheckpointPart):
    """state.json: the checkpoint that counts, the one before it, and the result that follows from it."""

    before: CheckpointPart | None = None
    result: Digest | None = None


class AlternativePart(File):
    option: str
    architecture: str
    loss: float
    error: float
    accuracy: float
    local_loss: float
    local_error: float


class EvidencePart(File):
    name: str
    choice: str
    examples: Count
    local_examples: Count
    alternatives: list[AlternativePart]


class TrustFile(File):
    """trust.json: what was measured of a search."""

    asked: Options
    evidence: list[EvidencePart]


class ClassFigures(File):
    """One class, or one label, among those that were judged."""

    rows: Count
    recall: float | None
    precision: float | None


class NumberFigures(File):
    """The errors of one number."""

    RMSE: float
    MAE: float


class MajorityFigures(File):
    """What always saying the most frequent class would score."""

    accuracy: float


class Figures(File):
    """What the judged rows say beyond the score."""

    metric: str
    score: float
    accuracy: float = 0.0
    balanced: float = Field(default=0.0, alias="balanced accuracy")
    exact: float = Field(default=0.0, alias="exact match")
    majority: MajorityFigures | None = None
    each: dict[str, ClassFigures | NumberFigures] = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.majority is not None and "accuracy" not in self.model_fields_set:
            raise ValueError("figures of classes lack their accuracy")
        if len({type(row) for row in self.each.values()}) > 1:
            raise ValueError("figures are of classes or of numbers, not of both")
        return self


NoFigures = Annotated[dict[str, Any], Field(max_length=0)]


class SearchRow(File):
    """An epoch of a search."""

    epoch: Count
    train_loss: float
    train_accuracy: float
    valid_loss: float
    valid_accuracy: float
    discrete_accuracy: float | None
    drop: float | None
    entropy: float
    entropies: dict[str, float]
    architecture: str
    unusable: str | None = None
    weights: Weights
    lr: float
    arch_lr: float
    seconds: float


class SearchResult(File):
    """The end of a search."""

    run: str
    space: str
    method: str
    objective: str
    data: str
    seed: Count
    epochs: Count
    architecture: str
    accuracy: float | None
    unusable: str | None = None
    entropy: float | None
    seconds: float
    figures: Figures | NoFigures = {}
    weights: Weights = {}
    constraint: Constraint | None = None
    scored: Count = 0
    forms: Count = 0
    candidates: list[Candidate] = []


class Candidate(File):
    """An architecture that a search without training has trained."""

    architecture: str
    accuracy: float


class FreeArchitecture(File):
    """What a search would have taken without its limit."""

    architecture: str
    params: int | None
    multiply_adds: Count | None = None
    latency: float | None = None


class Constraint(File):
    """What the limits of a search led to."""

    size: dict[str, int]
    unconstrained: FreeArchitecture
    max_params: int | None
    max_latency: float | None = None
    params: int
    multiply_adds: Count | None = None
    latency: float | None = None
    sure: float
    candidates: list[Any]


class TrainRow(File):
    """An epoch of a training."""

    epoch: Count
    train_loss: float
    train_accuracy: float
    test_loss: float | None
    test_accuracy: float | None
    lr: float
    seconds: float


class TrainResult(File):
    """The end of a training."""

    space: str
    architecture: str
    data: str
    seed: Count
    accuracy: float
    loss: float
    judged_by: str
    parameters: Count
    epochs: Count
    seconds: float
    curve: Annotated[list[TrainRow], Field(min_length=1)]
    out: str | None = None
    multiply_adds: Count | None = None
    figures: Figures | NoFigures = {}


class SelectScores(File):
    configs: list[Count]
    accuracy: list[float | None]
    loss: list[float | None]


class SelectRow(File):
    """A solver call of a selection."""

    calls: Count
    seconds: float
    incumbent: Count
    config: Options
    validation: str
    validation_accuracy: float
    test_accuracy: float | None
    oracle_test_accuracy: float | None
    scores: SelectScores


class SelectResult(File):
    """The end of a selection."""

    run: str | None
    config: Options
    validation: str
    validation_accuracy: float
    test_accuracy: float | None
    oracle_test_accuracy: float | None
    calls: Count
    configs: Count
    seconds: float
    peak_bytes: Count


class ScoreLine(File):
    """What scores.jsonl keeps of one form."""

    form: str
    architecture: str
    scores: dict[str, float]
    seconds: dict[str, float]
    failed: dict[str, str]
    versions: dict[str, int] = {}

    @model_validator(mode="after")
    def _timed(self) -> Self:
        for name in self.scores:
            if name not in self.seconds:
                raise ValueError(f"it has a score by {name!r:.40} without its seconds")
        return self


class ScoreRequest(File):
    """request.json: the last call on a folder of scores."""

    metrics: Annotated[list[str], Field(min_length=1)]
    sample: int | None
    all_distinct: bool
    architectures: list[str] | None = None


class ScoreSettings(File):
    """The settings of a folder of scores."""

    space: str
    space_options: Options
    size: dict[str, int]
    data: str
    batch: int | None
    resolution: int | None
    seed: Count


class ScoreFile(RunFile):
    settings: ScoreSettings  # type: ignore[assignment]


def _step(value: list[Any]) -> list[Any]:
    spent, cell, accuracy = value
    if type(cell) is not int or cell < 0:
        raise ValueError(f"it names its cell by a whole number, got {cell!r:.40}")
    for number in (spent, accuracy):
        if type(number) not in (int, float) or not abs(number) < 1e300:
            raise ValueError(f"it has a time and an accuracy, got {number!r:.40}")
    return value


Step = Annotated[list[Any], Field(min_length=3, max_length=3), AfterValidator(_step)]
"""The time so far, the cell, and its accuracy."""


class TrialRow(File):
    """A trial of a race."""

    trial: Count
    spent: float
    trainings: Count
    steps: Annotated[list[Step], Field(min_length=1)]


class TrialsFile(File):
    """trials/METHOD-N.json."""

    method: str
    trials: list[TrialRow]


class LandscapeRow(File):
    """A row of a landscape."""

    row: Count
    losses: list[float | None]
    variances: list[float | None]


class ReproduceRow(File):
    """One measurement of a claim."""

    measure: str
    seed: Count
    values: dict[str, float]
    seconds: Annotated[float, Field(ge=0)]


class FindingPart(File):
    """A claim with its verdict."""

    claim: str
    figure: float
    interval: Annotated[list[float], Field(min_length=2, max_length=2)] | None
    verdict: str
    seeds: list[Count]


class ReproduceResult(File):
    """The findings of the last call on a folder of measurements."""

    data: str
    claims: list[FindingPart]


class FindOptions(File):
    """The settings of a find."""

    space: str
    space_options: Options
    data: str
    method: str
    seed: Count
    size: dict[str, Size]
    search_size: dict[str, Size]
    target: str | None
    baseline: str | None
    max_params: Count | None
    max_latency: float | None
    level: Annotated[float, Field(gt=0, lt=1)]
    workers: Size
    batch_size: Size
    trainings: Size | None
    epochs: Size | None
    device: str = "cpu"
    augment: str | None = None
    class_weights: str | None = None
    precision: str = "32"
    edition: Count = 1
    shares: dict[str, Annotated[float, Field(gt=0, lt=1)]] = {}


class BudgetPart(File):
    seconds: Seconds | None
    trainings: Count | None
    more: bool


class FindFile(WithData):
    settings: FindOptions  # type: ignore[assignment]
    budget: BudgetPart | None = None


class Side(File):
    architecture: str
    parameters: Count
    multiply_adds: Count | None = None
    accuracy: float
    accuracies: list[float]
    kind: str


class FindResult(File):
    """The end of a find."""

    run: str
    space: str
    data: str
    architecture: str
    parameters: Count
    multiply_adds: Count | None = None
    accuracy: float
    accuracies: list[float]
    baseline: Side
    difference: float
    interval: Annotated[list[float], Field(min_length=2, max_length=2)]
    level: float
    better: bool | None
    take: str
    trained: str
    taken_from: str
    sentence: str
    front: list[Options]
    figures: Figures | NoFigures = {}


class CellResult(File):
    training: Options


class KeptIterate(File):
    """The iterate that a search has set aside to return."""

    supernet: Options
    params: Options


class EngineState(File):
    """The moving parts of a search."""

    supernet: Options
    params: Options
    weight_optimizer: Options
    arch_optimizer: Options | None
    tallies: dict[str, Annotated[list[Any], Field(min_length=3, max_length=3)]]
    kept: KeptIterate | None
    stage: Count = 0
    size: dict[str, int] = {}
    memory: Options = {}


class SearchCheckpoint(File):
    engine: EngineState
    epoch: Count
    step: Count
    seconds: float


class TrainCheckpoint(File):
    network: Options
    epoch: Count
    step: Count
    loss: float
    correct: float
    seconds: float
    rows: list[TrainRow]


class IncumbentPart(File):
    config: Count
    alone: bool
    accuracy: float
    loss: float
    dimension: Count
    seed: Count
    test: float | None


class SelectCheckpoint(File):
    calls: Count
    peak_bytes: Count
    incumbent: IncumbentPart


class CellCheckpoint(File):
    network: Options


for _model in (SearchResult, Constraint):
    _model.model_rebuild()


@dataclass(frozen=True)
class KindOfRun:
    """The schemas of a kind of run."""

    about: type[RunFile] = RunFile
    row: type[File] | None = None
    result: type[File] | None = None
    checkpoint: type[File] | None = None


KINDS: Mapping[str, KindOfRun] = {
    "search": KindOfRun(SearchFile, SearchRow, SearchResult, SearchCheckpoint),
    "train": KindOfRun(TrainFile, TrainRow, TrainResult, TrainCheckpoint),
    "select": KindOfRun(WithData, SelectRow, SelectResult, SelectCheckpoint),
    "score": KindOfRun(ScoreFile),
    "race": KindOfRun(WithSettings),
    "landscape": KindOfRun(WithSettings, LandscapeRow),
    "convergence": KindOfRun(WithSettings),
    "cell": KindOfRun(WithSettings, None, CellResult, CellCheckpoint),
    "find": KindOfRun(FindFile, None, FindResult),
    "reproduce": KindOfRun(WithSettings, ReproduceRow, ReproduceResult),
}
