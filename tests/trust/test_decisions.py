"""Decisions measured, judged, compared over seeds; and the drift to skips."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from nasight import spaces
from nasight.errors import RequestError
from nasight.spaces import Space, Supernet
from nasight.trust import (
    Alternative,
    EntropyTrend,
    Evidence,
    Verdict,
    agreement,
    average,
    candidates,
    collapse,
    decision_advice,
    decisions,
    first_examples,
    judge,
    measure,
    run_advice,
)
from nasight.trust._decisions import placed

SIZES = {
    "mlp": {"width": 8},
    "nasbench201": {"channels": 4, "cells": 1},
    "nasbench1shot1-1": {"channels": 4, "cells": 1},
    "darts": {"channels": 4, "cells": 3},
}


def made(name: str, seed: int = 0) -> tuple[Space, Supernet, dict[str, torch.Tensor], list]:  # type: ignore[type-arg]
    torch.manual_seed(seed)
    space = spaces.load(name)
    supernet = space.supernet((1, 8, 8), 3, **SIZES[name])
    weights = {g.name: torch.cat([torch.rand(n).softmax(0) for n in g.sizes]).reshape(g.shape) for g in supernet.groups}
    batches = [(torch.randn(12, 1, 8, 8), torch.randint(3, (12,))) for _ in range(1)]
    return space, supernet, weights, batches


@pytest.mark.parametrize("name", SIZES)
def test_every_alternative_is_an_architecture_of_the_space_that_differs_in_its_decision_alone(name: str) -> None:
    space, _, weights, _ = made(name)
    arch = space.derive(weights)
    asked = decisions(space, arch, weights)
    for each in asked:
        assert each.architectures[each.options.index(each.choice)] == arch
        for option, other in zip(each.options, each.architectures, strict=True):
            assert other in space
            changed = {n for n, _ in arch if arch[n] != other[n]}
            if each.name.endswith(" inputs"):
                assert all(n.split("->")[1] == each.name.split()[1] for n in changed)
            else:
                assert changed == (set() if option == each.choice else {each.name})


def test_a_darts_cell_decides_the_operation_of_each_kept_edge_and_the_pair_of_each_node_that_has_a_choice() -> None:
    space, _, weights, _ = made("darts")
    asked = decisions(space, space.derive(weights), weights)
    sizes = {a.name: len(a.options) for a in asked}
    assert [n for n in sizes if "inputs" in n] == [f"{k} {t} inputs" for k in ("normal", "reduce") for t in (3, 4, 5)]
    assert [sizes[f"normal {t} inputs"] for t in (3, 4, 5)] == [3, 6, 10]
    assert sum("->" in n for n in sizes) == 16
    assert all(size == 7 for n, size in sizes.items() if "->" in n)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_the_discrete_question_is_the_supernet_at_each_single_change(name: str) -> None:
    space, supernet, weights, batches = made(name)
    arch = space.derive(weights)
    found = measure(supernet, space, arch, weights, batches, local=0)
    edges = any(not g.exclusive for g in supernet.groups)

    def mean_loss(text: str) -> float:
        given = space.encode(space.parse(text), edges=edges)
        with torch.no_grad():
            return float(np.mean([float(F.cross_entropy(supernet.eval()(x, given), y)) for x, y in batches]))

    base = mean_loss(space.format(arch))
    for each in (found[0], found[-1]):
        assert each.examples == 12
        assert all(np.isnan(a.local_loss) for a in each.alternatives)
        assert judge(each).local_rival is None
        for alternative in each.alternatives:
            assert alternative.loss == pytest.approx(mean_loss(alternative.architecture) - base, abs=1e-5)


def test_the_local_question_replaces_one_row_and_leaves_the_others_at_their_weights() -> None:
    space, supernet, weights, batches = made("nasbench201")
    found = measure(supernet, space, space.derive(weights), weights, batches)[2]
    options = space.decisions[2].options

    def loss(option: str) -> float:
        given = {"operations": weights["operations"].clone()}
        given["operations"][2] = F.one_hot(torch.tensor(options.index(option)), 5).float()
        with torch.no_grad():
            return float(np.mean([float(F.cross_entropy(supernet.eval()(x, given), y)) for x, y in batches]))

    for a in found.alternatives:
        assert a.local_loss == pytest.approx(loss(a.option) - loss(found.choice), abs=1e-5)


@pytest.mark.parametrize("name", ["nasbench201", "nasbench1shot1-1"])
def test_with_weights_that_are_sure_a_sampling_method_asks_the_discrete_question_twice(name: str) -> None:
    space, supernet, weights, batches = made(name)
    arch = space.derive(weights)
    sure = {n: w + 1e-9 for n, w in space.encode(arch).items()}
    found = measure(supernet, space, arch, sure, batches, sampled=True, draws=2)
    operations = [e for e in found if "inputs" not in e.name]
    assert operations
    for a in (a for e in operations for a in e.alternatives):
        assert a.local_loss == pytest.approx(a.loss, abs=1e-5)


def test_an_option_that_the_search_dropped_or_that_leaves_no_network_is_no_alternative() -> None:
    space, _, weights, _ = made("nasbench201")
    only = space.parse("|none~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|")
    asked = {a.name: a.options for a in decisions(space, only, weights)}
    assert "none" not in asked["0->3"]
    weights["operations"][0, 1] = 0.0
    asked = {a.name: a.options for a in decisions(space, only, weights)}
    assert "skip_connect" not in asked["0->1"]


def test_the_pair_of_a_darts_node_is_asked_locally_with_the_other_edges_off() -> None:
    space, supernet, weights, _ = made("darts")
    arch = space.derive(weights)
    asked = next(a for a in decisions(space, arch, weights) if a.name == "normal 5 inputs")
    given = placed(weights, space.encode(asked.architectures[1]), asked.rows, supernet.groups)
    assert int((given["normal"][-5:, 1:].sum(1) == 0).sum()) == 3
    assert torch.equal(given["normal"][:-5], weights["normal"][:-5])
    assert torch.equal(given["reduce"], weights["reduce"])


def test_the_first_examples_are_those_asked_for_and_never_one_alone() -> None:
    batches = [(torch.zeros(4, 1), torch.arange(4)), (torch.zeros(4, 1), torch.arange(4, 8))]
    for wanted, lengths in ((None, [4, 4]), (0, []), (3, [3]), (5, [4]), (6, [4, 2]), (100, [4, 4])):
        assert [len(y) for _, y in first_examples(batches, wanted)] == lengths


def evidence(losses: list[float], error: float = 0.1, local: list[float] | None = None, n: int = 200) -> Evidence:
    near = local or losses
    options = zip(losses, near, strict=True)
    made = [Alternative(f"o{i}", f"a{i}", loss, error, 0.0, at, error) for i, (loss, at) in enumerate(options)]
    return Evidence("d", "c", n, n, tuple(made))


def test_a_verdict_is_safe_unsafe_or_unknown_by_the_corrected_level() -> None:
    assert judge(evidence([0.5, 0.6])).verdict == "safe"
    assert judge(evidence([0.5, -0.6])).verdict == "unsafe"
    assert judge(evidence([0.5, -0.6])).rival == "o1"
    unknown = judge(evidence([0.5, 0.05]))
    assert (unknown.verdict, unknown.ties, unknown.within_noise) == ("unknown", ("o1",), False)
    noise = judge(evidence([0.05, -0.05]))
    assert noise.within_noise
    assert decision_advice(noise).startswith("stop: the choice does not matter")
    # 1.9 errors are 97 % for one alternative and less than 95 % for three.
    assert judge(evidence([0.19])).verdict == "safe"
    assert judge(evidence([0.19, 9, 9])).verdict == "unknown"
    assert 0 <= unknown.confidence < 0.95


def test_a_safe_choice_that_the_local_question_denies_is_unknown_and_says_why() -> None:
    verdict = judge(evidence([0.5, 0.6], local=[0.5, -0.6]))
    assert verdict.verdict == "unknown"
    assert verdict.local_rival == "o1"
    assert "with the others at their weights o1 is better" in verdict.evidence


def test_options_that_compute_the_same_are_never_told_apart_and_never_divide_by_zero() -> None:
    same = judge(evidence([0.0, 0.0], error=0.0))
    assert (same.verdict, same.within_noise) == ("unknown", True)


def test_a_margin_below_the_least_is_not_called_safe() -> None:
    assert judge(evidence([0.5, 0.6]), least=0.55).verdict == "unknown"
    with pytest.raises(RequestError, match=r"level must be at least 0.5 and below 1, got 95"):
        judge(evidence([0.5]), level=95)


def test_of_choices_called_safe_at_95_percent_at_least_95_percent_are_the_best() -> None:
    rng = np.random.default_rng(0)
    safe = right = 0
    for _ in range(3000):
        truth = rng.normal(0, 0.15, size=4)
        losses = truth[:, None] + rng.normal(0, 1, size=(4, 100))
        at = int(rng.integers(4))
        others = [i for i in range(4) if i != at]
        differences = losses[others] - losses[at]
        means, errors = differences.mean(1), differences.std(1, ddof=1) / 10
        given = [Alternative(str(o), "", m, e, 0, m, e) for o, m, e in zip(others, means, errors, strict=True)]
        if judge(Evidence("d", str(at), 100, 100, tuple(given))).verdict == "safe":
            safe += 1
            right += truth[at] < truth[others].min()
    assert safe > 40
    assert right / safe >= 0.95


def test_decisions_that_flip_with_the_seed_are_found_and_weights_are_averaged() -> None:
    both = agreement([{"a": "x", "b": "y"}, {"a": "x", "b": "z"}, {"a": "x"}])
    assert [(g.name, g.flips, g.share) for g in both] == [("a", False, 1.0), ("b", True, pytest.approx(1 / 3))]
    assert both[1].counts == {"y": 1, "z": 1, "not kept": 1}
    verdict = judge(evidence([0.5]))
    assert "flips with the seed (y 1, z 1, not kept 1)" in decision_advice(verdict, agreement=both[1])
    assert average([{"w": [[1.0, 0.0]]}, {"w": [[0.5, 0.5]]}])["w"].tolist() == [[0.75, 0.25]]
    with pytest.raises(RequestError, match="different groups"):
        average([{"w": [[1.0]]}, {"v": [[1.0]]}])


def drifting(epochs: int, until: int) -> list[dict[str, np.ndarray]]:
    """Edge after edge turns to skip_connect, one an epoch, until so many are."""
    history = []
    for epoch in range(epochs):
        logits = np.zeros((6, 4))
        logits[:, 2] = 0.5
        logits[: min(epoch, until), 0] = 1.0
        logits[:, 0] += 0.02 * epoch
        history.append({"operations": np.exp(logits) / np.exp(logits).sum(1, keepdims=True)})
    return history


def test_an_all_skip_drift_is_flagged_before_it_is_complete() -> None:
    space = spaces.load("nasbench201", none=False)
    found = collapse(drifting(10, 6), space)
    assert found is not None
    assert (found.flagged, found.complete) == (3, 6)
    assert found.shares[:7] == pytest.approx([k / 6 for k in range(7)])
    few = collapse(drifting(10, 2), space)
    assert few is not None
    assert (few.flagged, few.complete) == (None, None)
    assert collapse([{}], spaces.load("mlp")) is None


def test_advice_follows_from_the_evidence() -> None:
    unknown, unsafe = judge(evidence([0.5, 0.05])), judge(evidence([0.5, -0.6]))
    undecided = EntropyTrend.of([1.38, 1.38, 1.37, 1.37], 4)
    still = EntropyTrend.of([1.38, 1.2, 1.0, 0.8, 0.6, 0.4, 0.3, 0.2], 4)
    settled = EntropyTrend.of([0.1] * 8, 4)
    assert decision_advice(unknown, undecided, twin="gaea-darts").startswith("switch to gaea-darts: ")
    assert decision_advice(unknown, still).startswith("search longer: ")
    assert decision_advice(unknown, settled) == "either will do: o1 cannot be told from it"
    assert decision_advice(unsafe) == "retrain briefly with o1 instead and compare"

    def advised(*verdicts: Verdict, mind: EntropyTrend, twin: str | None = None) -> list[tuple[str, str | None]]:
        found = run_advice(verdicts, {"d": mind}, run="r", again=lambda **changes: str(changes), epochs=8, twin=twin)
        return [(a.action, a.command) for a in found]

    resolve = ("retrain candidates briefly", "nasight explain r --resolve")
    assert advised(unsafe, unknown, mind=still) == [("search longer", "{'epochs': 16}"), resolve]
    assert advised(unknown, mind=undecided, twin="gaea-darts") == [
        ("switch to gaea-darts", "{'method': 'gaea-darts'}"),
        resolve,
    ]
    assert advised(judge(evidence([0.9])), mind=still) == [("stop", None)]


def test_candidates_are_the_found_one_all_better_options_at_once_and_the_best_single_changes() -> None:
    space = spaces.load("mlp", layers=3)
    arch = space.parse("relu,tanh/0")
    parts = []
    for name, option, loss in (("activation 1", "swish", -0.6), ("activation 2", "relu", -0.7), ("skip 1", "1", 0.5)):
        text = space.format(arch.replace(name, option))
        one = replace(evidence([loss]).alternatives[0], option=option, architecture=text)
        parts.append(Evidence(name, arch[name], 200, 200, (one,)))
    texts = candidates(space, arch, parts, [judge(p) for p in parts])
    assert texts == ["relu,tanh/0", "swish,relu/0", "relu,relu/0"]
