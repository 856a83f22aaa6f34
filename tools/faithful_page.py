"""Write the protocols into docs/faithful.md: for every method and space what a preset does, and what was published.

python tools/faithful_page.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nasight.searching import METHODS, PROTOCOLS, UNPUBLISHED, Method, Published, SearchSettings, resolve
from nasight.spaces import Space, load

PAGE = Path(__file__).resolve().parent.parent / "docs" / "faithful.md"
BEGIN = "<!-- The tables from here on are written by tools/faithful_page.py. -->"
END = "<!-- Here they end. -->"
SPACES = {"nasbench201": "nasbench201", "darts": "darts", "nasbench1shot1": "nasbench1shot1-1"}
"""Family -> a space of it."""
TITLES = {"nasbench201": "NAS-Bench-201", "darts": "DARTS", "nasbench1shot1": "NAS-Bench-1Shot1"}
"""Family -> what its publication calls it."""


def tables() -> str:
    """Both tables, as they stand in the page."""
    return "\n".join([BEGIN, "", *_protocols(), "", *_grid(), "", END])


def page(text: str) -> str:
    """The page with its tables as they should be."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + tables() + after


def _protocols() -> Iterator[str]:
    columns = (
        "method",
        "space",
        "length",
        "data",
        "shared weights",
        "architecture",
        "network",
        "differences",
        "source",
    )
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for preset, rows in PROTOCOLS.items():
        for (name, family), published in rows.items():
            space = load(SPACES[family], **_options(published))
            found = resolve(METHODS[name], space, data="", preset=preset, threads=1, device="cpu")
            place = TITLES[family] + (", ImageNet" if preset == "imagenet" else "")
            words = described(METHODS[name], space, found)
            yield f"| {' | '.join([name, place, *words, '; '.join(published.notes), published.source])} |"


def _options(published: Published) -> dict[str, object]:
    none = {"none": published.settings["none"]} if "none" in published.settings else {}
    return {**published.settings.get("space_options", {}), **none}


def described(method: Method, space: Space, s: SearchSettings) -> list[str]:
    """The settings of a search in a few words: length, data, shared weights, architecture, network."""
    return [_length(method, s), _data(method, s), _weights(s), _architecture(method, s), _network(method, space, s)]


def _length(method: Method, s: SearchSettings) -> str:
    stages = len(method.schedule.stages)
    epochs = f"{s.epochs} epochs" if stages == 1 else f"{stages} stages of {s.epochs // stages} epochs"
    over = f" of a cosine over {s.schedule_epochs}" if s.schedule_epochs != s.epochs else ""
    return f"{epochs}{over}, warm-up {s.warmup // stages}"


def _data(method: Method, s: SearchSettings) -> str:
    """What is minimized in which order, and which rows are for what."""
    objective = method.objective(s.objective)
    order = {None: "", False: ", architecture first", True: ", weights first"}
    turns = order[None if objective.weights_first is None else s.weights_first]
    rows = "all rows" if s.share is None else f"{s.share:g} of the rows"
    parts = f", {s.arch_share:g} of them for the architecture" if objective.halves else ""
    judged = f", {s.validation:g} of them to judge" if s.validation else ""
    return f"{s.objective}{turns}; {rows}{parts}{judged}"


def _weights(s: SearchSettings) -> str:
    rises = f", rises for {s.lr_warmup} epochs" if s.lr_warmup else ""
    nesterov = " Nesterov" if s.nesterov else ""
    clip = "no clip" if s.clip is None else f"clip {s.clip:g}"
    rate = f"lr {s.lr:g} to {s.lr_min:g}{rises}"
    return f"batch {s.batch_size}, {rate}, momentum {s.momentum:g}{nesterov}, decay {s.weight_decay:g}, {clip}"


def _architecture(method: Method, s: SearchSettings) -> str:
    words = [f"lr {s.arch_lr:g}"] if method.geometry.moves else []
    words += [] if s.arch_clip is None else [f"clip {s.arch_clip:g}"]
    words += [f"{s.candidates} candidates on {s.candidate_rows} rows each"] if s.candidates else []
    return ", ".join(words)


def _network(method: Method, space: Space, s: SearchSettings) -> str:
    size, partial = space.size(**s.size), s.partial or method.relaxation.partial
    depths = [str(round(stage.depth * size["cells"])) for stage in method.schedule.stages]
    words = [f"{name} {', '.join(depths) if name == 'cells' else value}" for name, value in size.items()]
    words += [f"K {partial}"] if partial > 1 else []
    words += [f"photos of {space.photo_pixels[s.preset]} pixels"] if s.preset in space.photo_pixels else []
    return ", ".join([*words, *(option if value else f"no {option}" for option, value in space.options.items())])


def _grid() -> Iterator[str]:
    yield f"| method | {' | '.join(TITLES.values())} | where there is none |"
    yield f"|---|{'---|' * len(TITLES)}---|"
    for name in METHODS:
        cells = [_presets(name, family) for family in TITLES]
        if "-" in cells and name not in UNPUBLISHED:
            raise SystemExit(f"UNPUBLISHED does not say why {name} lacks a protocol somewhere")
        yield f"| {name} | {' | '.join(cells)} | {UNPUBLISHED[name] if '-' in cells else ''} |"


def _presets(method: str, family: str) -> str:
    return ", ".join(f"`{preset}`" for preset, rows in PROTOCOLS.items() if (method, family) in rows) or "-"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    print(PAGE)
