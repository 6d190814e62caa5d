"""Draws the timelines that pipeline_resnet50 has written, one below another, as
timeline.svg: a row for each rank, with the forwards (F), backwards (B) and
updates of the first step of the cycle.

    timeline.py [FOLDER]    where the program has run

A rank's clock begins with its own cycle, up to some milliseconds apart.
"""

import json
import pathlib
import sys

RUNS = {"pipeline_resnet50_1": "one half after the other", "pipeline_resnet50_4": "pipelined"}
COLOURS = {"F": "#4878a8", "B": "#6aa84f", "U": "#e0a030"}
WIDTH, LEFT, ROW, HEAD = 1000, 70, 36, 40


def bars_of(path):
    """Returns (name, begin, end) of a rank's actions in a step, in ms."""
    events = json.loads(path.read_text())["traceEvents"]
    step = next(e for e in events if e["name"].startswith("ProfilerStep"))
    end = step["ts"] + step["dur"]
    bars, begins = [], {}
    for event in events:
        if event.get("cat") not in ("action", "update") or event["ts"] > end:
            continue
        name = event["name"]
        if event["ph"] == "B":
            begins[name] = event["ts"]
        elif event["ph"] == "E":
            bars.append((name, begins.pop(name) / 1000, event["ts"] / 1000))
    return bars


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def draw(runs):
    """Returns the SVG of runs: titles, and the bars of each of their ranks."""
    last = max(end for _, ranks in runs for bars in ranks for _, _, end in bars)
    scale = (WIDTH - LEFT - 10) / last
    shapes, y = [], 0
    for title, ranks in runs:
        length = max(end for bars in ranks for _, _, end in bars)
        shapes.append(text(LEFT, y + 26, f"{title}: {length:.0f} ms"))
        y += HEAD
        for rank, bars in enumerate(ranks):
            shapes.append(text(8, y + 20, f"rank {rank}"))
            for name, begin, end in bars:
                x, width = LEFT + begin * scale, (end - begin) * scale
                shapes.append(
                    f'<rect class="{name}" x="{x:.1f}" y="{y}" width="{width:.1f}" '
                    f'height="{ROW - 6}" fill="{COLOURS[name[0]]}"/>'
                )
                if width > 20:
                    shapes.append(text(x + width / 2, y + 20, name, "middle"))
            y += ROW
    size = f'width="{WIDTH}" height="{y + 10}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
            'font-family="sans-serif" font-size="14">',
            '<rect width="100%" height="100%" fill="white"/>',
            *shapes,
            "</svg>\n",
        ]
    )


def main(folder="."):
    folder = pathlib.Path(folder)
    runs = []
    for name, title in RUNS.items():
        files = sorted((folder / name).glob("rank*_cycle1.json"))
        if not files:
            sys.exit(f"{folder / name} has no timelines; run pipeline_resnet50 first")
        runs.append((title, [bars_of(file) for file in files]))
    (folder / "timeline.svg").write_text(draw(runs))


if __name__ == "__main__":
    main(*sys.argv[1:])
