"""A race in words and as one interactive page that needs no network."""

from __future__ import annotations

from html import escape
from typing import Any

from nasight.report._svg import COLORS
from nasight.tables import DATASETS, RACERS, Race

LABELS = {"test": "test accuracy, %", "regret": "regret, points", "valid": "validation accuracy seen, %"}
STYLE = (
    "body{font:15px system-ui,sans-serif;color:#222;max-width:1060px;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.3em .8em;white-space:nowrap;"
    "text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}p{max-width:46em}.dim{color:#666}"
)


def race_headline(race: Race) -> str:
    """What was raced, in one line: the data set, the trials and the table."""
    s = race.settings
    trials = f"{s['trials']} trials of {s['budget']:,.0f} simulated seconds"
    return f"search on {DATASETS[s['dataset']]}, {trials}, table {s['table_name']}"


def race_rows(race: Race) -> list[list[str]]:
    """The comparison of a race as rows of texts, the heading first: test accuracies after the full training."""
    comparable = race.settings["dataset"] == "c10" and any(s.published for s in race.standings)
    names = [DATASETS[d] for d in race.optimum]
    rows = [["", "n", *names, "cost, s", "trainings", *(["published"] if comparable else [])]]
    for s in race.standings:
        row = [s.name, str(s.count)]
        row += [f"{mean:.2f} ± {spread:.2f}" for mean, spread in s.test.values()]
        row += [f"{s.cost:,.0f}" + ("" if s.kind == "black-box" else " here")]
        row += ["" if s.trainings is None else f"{s.trainings:.1f}"]
        if comparable:
            row.append(" / ".join(f"{mean:.2f}" for mean, _ in s.published.values()))
        rows.append(row)
    blank = ["", "", ""] if comparable else ["", ""]
    rows.append(["optimum", "", *(f"{best:.2f}" for best in race.optimum.values()), *blank])
    return rows


def race_text(race: Race) -> str:
    """The comparison of a race as aligned lines, for a terminal."""
    rows = race_rows(race)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    left_out = [f"left out: {reason}" for reason in race.left_out.values()]
    return "\n".join([race_headline(race), "", *lines, *([""] if left_out else []), *left_out])


def race_page(race: Race) -> str:
    """The comparison of a race as one HTML text: curves over simulated time, and where everything ended."""
    from plotly.io import to_html

    figures = [figure for figure in (_curves(race) if race.curves else None, _ends(race)) if figure is not None]
    shown = [
        to_html(figure, full_html=False, include_plotlyjs=index == 0, div_id=f"figure-{index}")
        for index, figure in enumerate(figures)
    ]
    methods = [
        f"<b>{escape(racer.name)}</b> {escape(racer.settings)} ({escape(racer.paper)})"
        for racer in RACERS.values()
        if _raced(race, racer.name)
    ]
    return "\n".join(
        [
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Race on a table</title>'
            f"<style>{STYLE}</style></head><body><h1>Race on a table</h1>",
            f"<p>{escape(race_headline(race))}. Accuracies are of the cell found, on test data after "
            f"{race.settings.get('epochs', 200)} epochs: mean ± standard deviation. "
            "Costs of runs are seconds on the machine that ran them.</p>",
            _table(race_rows(race)),
            *shown,
            f'<p class="dim">{"; ".join(methods)}.</p>' if methods else "",
            *(f'<p class="dim">Left out: {escape(reason)}</p>' for reason in race.left_out.values()),
            "</body></html>\n",
        ]
    )


def _raced(race: Race, name: str) -> bool:
    return any(curve.name == name for curve in race.curves)


def _table(rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _curves(race: Race) -> Any:
    """Medians with the band between the quartiles; buttons choose the quantity."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for quantity in LABELS:
        for index, curve in enumerate(race.curves):
            color, shown = COLORS[index % len(COLORS)], quantity == "test"
            begun = [i for i, value in enumerate(curve.median[quantity]) if value is not None]
            x = [curve.seconds[i] for i in begun]
            band = [curve.upper[quantity][i] for i in begun] + [curve.lower[quantity][i] for i in reversed(begun)]
            same = {"legendgroup": curve.name, "visible": shown}
            figure.add_scatter(
                x=x + x[::-1], y=band, fill="toself", fillcolor=color, opacity=0.18, line={"width": 0},
                hoverinfo="skip", showlegend=False, **same,
            )  # fmt: skip
            middle = [curve.median[quantity][i] for i in begun]
            figure.add_scatter(x=x, y=middle, name=curve.name, line={"color": color, "width": 2.5}, **same)
    each = 2 * len(race.curves)
    buttons = [
        {
            "label": label,
            "method": "update",
            "args": [
                {"visible": [i // each == index for i in range(each * len(LABELS))]},
                {"yaxis.title.text": label, "yaxis.autorange": True},
            ],
        }
        for index, label in enumerate(LABELS.values())
    ]
    figure.update_layout(
        template="plotly_white",
        height=470,
        title="The best cell so far: median and quartiles over trials",
        xaxis_title="simulated seconds",
        yaxis_title=LABELS["test"],
        updatemenus=[
            {"type": "buttons", "direction": "right", "x": 1, "y": 1.14, "xanchor": "right", "buttons": buttons}
        ],
    )
    return figure


def _ends(race: Race) -> Any:
    """Mean and spread at the end on each data set, the published values and the optimum beside them."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    names = [s.name for s in race.standings]
    figure = make_subplots(1, len(race.optimum), subplot_titles=[DATASETS[d] for d in race.optimum], shared_yaxes=True)
    for column, (dataset, best) in enumerate(race.optimum.items(), 1):
        ends = [s.test[dataset] for s in race.standings]
        series = [("here", names, ends, COLORS[5], "circle")]
        published = [s for s in race.standings if s.published and race.settings["dataset"] == "c10"]
        if published:
            values = [s.published[dataset] for s in published]
            series.append(("published", [s.name for s in published], values, COLORS[6], "diamond-open"))
        for name, y, values, color, symbol in series:
            figure.add_trace(
                go.Scatter(
                    x=[mean for mean, _ in values], y=y, name=name, mode="markers", showlegend=column == 1,
                    error_x={"array": [spread for _, spread in values]},
                    marker={"color": color, "symbol": symbol, "size": 9},
                ),
                row=1, col=column,
            )  # fmt: skip
        figure.add_vline(x=best, line={"dash": "dot", "color": "#666"}, row=1, col=column)
    figure.update_layout(
        template="plotly_white",
        height=200 + 34 * len(names),
        title="Test accuracy of what was found, %: mean and spread; dotted, the best cell",
    )
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure
