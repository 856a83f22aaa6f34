"""Charts as plain Plotly figures; colours of text and lines are the page's, set where it is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nasight.anatomy import CellGraph, Distribution
from nasight.report._picture import COLOURS

Chart = dict[str, Any]
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def line(name: str, x: Sequence[float], y: Sequence[float | None], colour: str, **more: Any) -> Chart:
    style = {"color": colour, "width": 2.2, **more.pop("line", {})}
    return {"type": "scatter", "mode": "lines+markers", "name": name, "x": list(x), "y": list(y), "line": style,
            "marker": {"size": 5}, **more}  # fmt: skip


def axis(title: str, **more: Any) -> Chart:
    return {"title": {"text": title}, "automargin": True, **more}


def search_chart(history: Sequence[Mapping[str, Any]]) -> Chart:
    """Accuracy, loss and entropy over the epochs, one above the other: hovering one shows all three."""
    epochs = [row["epoch"] + 1 for row in history]

    def of(key: str) -> list[float | None]:
        return [row[key] for row in history]

    rows = (
        ("y", (("supernet, held out", "valid_accuracy"), ("discretised, held out", "discrete_accuracy"),
               ("supernet, training", "train_accuracy"))),
        ("y2", (("supernet, held out", "valid_loss"), ("discretised, held out", "discrete_loss"),
                ("supernet, training", "train_loss"))),
    )  # fmt: skip
    data = [
        line(name, epochs, of(key), COLOURS[(5, 6, 2)[i]], yaxis=where, legendgroup=name, showlegend=where == "y",
             line={"dash": DASHES[i]})
        for where, series in rows
        for i, (name, key) in enumerate(series)
    ]  # fmt: skip
    data.append(line("drop by discretising, points", epochs, of("drop"), COLOURS[3], yaxis="y3", line={"dash": "dot"}))
    data.append(line("entropy, nats a decision", epochs, of("entropy"), COLOURS[0], yaxis="y4"))
    layout = {
        "xaxis": axis("epoch", anchor="y4"),
        "yaxis": axis("accuracy, %", domain=[0.76, 1]),
        "yaxis2": axis("loss, nats", domain=[0.51, 0.73]),
        "yaxis3": axis("drop", domain=[0.26, 0.48]),
        "yaxis4": axis("entropy", domain=[0, 0.22], rangemode="tozero"),
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "height": 760,
    }
    return {"data": data, "layout": layout}


def weights_chart(epochs: Sequence[int], options: Sequence[str], rows: Sequence[Sequence[float]], name: str) -> Chart:
    """The weights of one decision over the epochs, stacked: a column sums to one."""
    data = [
        {"type": "scatter", "mode": "lines", "stackgroup": "one", "name": option, "x": list(epochs),
         "y": [row[i] for row in rows], "line": {"color": COLOURS[i % len(COLOURS)], "width": 1},
         "hovertemplate": "%{y:.3f}"}
        for i, option in enumerate(options)
    ]  # fmt: skip
    layout = {
        "xaxis": axis("epoch"),
        "yaxis": axis("weight", range=[0, 1]),
        "hovermode": "x unified",
        "title": {"text": name, "y": 0.98, "yanchor": "top"},
        "height": 360,
    }
    return {"data": data, "layout": layout}


def compare_chart(histories: Mapping[str, Sequence[Mapping[str, Any]]]) -> Chart:
    """The discretised accuracy and the entropy of several runs."""
    data = []
    for i, (name, history) in enumerate(histories.items()):
        epochs = [row["epoch"] + 1 for row in history]
        colour, style = COLOURS[(5, 6, 2, 3, 0, 1, 7)[i % 7]], {"dash": DASHES[i % 5]}
        for key, where in (("discrete_accuracy", "y"), ("entropy", "y2")):
            values = [row[key] for row in history]
            data.append(
                line(name, epochs, values, colour, yaxis=where, legendgroup=name, showlegend=where == "y", line=style)
            )
    layout = {
        "xaxis": axis("epoch", anchor="y2"),
        "yaxis": axis("discretised accuracy, %", domain=[0.54, 1]),
        "yaxis2": axis("entropy, nats", domain=[0, 0.46], rangemode="tozero"),
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "height": 520,
    }
    return {"data": data, "layout": layout}


def standing_chart(space: Distribution, graph: CellGraph, others: Mapping[str, CellGraph]) -> Chart:
    """How many cells of the space have each width and depth, and where this one and the popular ones are."""
    widths, depths = sorted({w for w, _ in space.counts}), sorted({d for _, d in space.counts})
    share = [[100 * space.counts.get((w, d), 0) / space.cells for w in widths] for d in depths]
    data: list[Chart] = [
        {"type": "heatmap", "x": [f"{w:g}" for w in widths], "y": [str(d) for d in depths], "z": share,
         "colorscale": [[0, "rgba(0,114,178,0.04)"], [1, "rgba(0,114,178,0.85)"]],
         "colorbar": {"title": {"text": "% of cells"}},
         "hovertemplate": "width %{x}, depth %{y}: %{z:.2f} % of cells<extra></extra>"}
    ]  # fmt: skip
    places: dict[tuple[str, str], list[str]] = {}
    for name, other in others.items():
        places.setdefault((f"{other.width:g}", str(other.depth)), []).append(name)
    if places:
        data.append(
            {"type": "scatter", "mode": "markers", "name": "popular cells", "x": [x for x, _ in places],
             "y": [y for _, y in places], "text": [", ".join(names) for names in places.values()],
             "hovertemplate": "%{text}<extra></extra>",
             "marker": {"size": 10, "color": "#e69f00", "symbol": "diamond", "line": {"width": 1}}}
        )  # fmt: skip
    data.append(
        {"type": "scatter", "mode": "markers", "name": "found", "x": [f"{graph.width:g}"], "y": [str(graph.depth)],
         "hovertemplate": "found: width %{x}, depth %{y}<extra></extra>",
         "marker": {"size": 17, "color": "#d55e00", "symbol": "star", "line": {"width": 1}}}
    )  # fmt: skip
    layout = {
        "xaxis": axis("width, in channels c", type="category"),
        "yaxis": axis("depth", type="category"),
        "height": 360,
        "legend": {"orientation": "h", "y": 1.15},
    }
    return {"data": data, "layout": layout}


def scores_chart(metric: str, values: Sequence[float], own: float) -> Chart:
    """One train-free score of random architectures, and of the one found."""
    finite = sorted(values)
    return {
        "data": [
            {"type": "histogram", "x": finite, "name": "random cells", "marker": {"color": COLOURS[0]},
             "hovertemplate": "%{x}: %{y} cells<extra></extra>"}
        ],
        "layout": {
            "xaxis": axis(metric),
            "yaxis": axis("cells"),
            "shapes": [{"type": "line", "x0": own, "x1": own, "yref": "paper", "y0": 0, "y1": 1,
                        "line": {"color": "#d55e00", "width": 3}}],
            "annotations": [{"x": own, "yref": "paper", "y": 1.08, "text": "found", "showarrow": False}],
            "height": 260,
            "showlegend": False,
        },
    }  # fmt: skip


def small_surface(figure: Chart) -> Chart:
    """A surface that fits into half a page: axes without words, which the caption says."""
    bare = {"title": {"text": ""}, "tickfont": {"size": 10}, "nticks": 4}
    eye = {"x": 1.3, "y": 1.3, "z": 0.9}
    scene = {"xaxis": bare, "yaxis": bare, "zaxis": bare, "camera": {"eye": eye}}
    data = [{**each, "colorbar": {"thickness": 12, "len": 0.8}} for each in figure["data"]]
    return {"data": data, "layout": {"scene": scene, "height": 400, "margin": {"l": 0, "r": 0, "t": 0, "b": 0}}}
