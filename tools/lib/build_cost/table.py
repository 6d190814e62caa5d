"""The table of one build's cost, or of two side by side.

    print(table(cost))
    print(table(cost, before))
"""

from actions import KINDS, TESTS

SLOWEST = 10
NOTE = """\
Seconds of actions are wall-clock time from an action's start to its end, without
its wait for a free core. On a busy machine they are more than CPU seconds."""


def _number(value):
    if value is None:
        return "-"
    return "%d" % value if isinstance(value, int) else "%.1f" % value


def lines(heading, rows):
    """Formats rows (name, values), and a heading of that form, in columns."""
    columns = [heading] + [(name, [_number(value) for value in values])
                           for name, values in rows]
    names = max(len(name) for name, _ in columns)
    widths = [max(len(values[column]) for _, values in columns)
              for column in range(len(heading[1]))]
    return ["  ".join([name.ljust(names)] + [
        value.rjust(width) for value, width in zip(values, widths)])
            for name, values in columns]


def section(name, fields, rows, compared):
    """Formats rows of (name, values now, values before) with one value for each
    of `fields`. A field has two columns if the build is compared."""
    if not compared:
        return lines((name, list(fields)), [(row, now) for row, now, _ in rows])
    heading = [word for field in fields for word in (field + " before", "now")]
    return lines((name, heading), [
        (row, [value for pair in zip(before, now) for value in pair])
        for row, now, before in rows])


def _values(row, fields):
    return [row.get(field) if row else None for field in fields]


def kinds(cost, before):
    """Returns the table of kinds of actions, with their sum."""
    fields = ("number", "seconds")

    def of(side):
        rows = {kind: side["kinds"][kind] for kind in KINDS}
        number = sum(row["number"] for row in rows.values())
        rows["all actions"] = {"number": number,
                               "seconds": side["total_seconds"]}
        return rows

    now, then = of(cost), of(before) if before else {}
    rows = [(kind, _values(row, fields), _values(then.get(kind), fields))
            for kind, row in now.items()
            if kind not in KINDS or row["number"]
            or (then.get(kind) or row)["number"]]
    return section("actions", fields, rows, before)


def with_top_folders(folders):
    """Adds to {"a/b": row} the sum of each top folder that has several rows.

    Returns {name: row}, where the name of a second level is indented. Larger
    sums come first.
    """
    tops = {}
    for folder, row in folders.items():
        tops.setdefault(folder.split("/")[0], {})[folder] = row

    def order(item):
        return -item[1]["seconds"], item[0]

    sums = {top: {field: sum(row[field] for row in rows.values())
                  for field in ("compiles", "seconds")}
            for top, rows in tops.items()}
    named = {}
    for top, total in sorted(sums.items(), key=order):
        named[top] = total
        if list(tops[top]) == [top]:
            continue
        for folder, row in sorted(tops[top].items(), key=order):
            # Files of the top folder itself have no second level.
            named["  " + (folder if folder != top else top + " itself")] = row
    return named


def folders(cost, before):
    """Returns the table of folders. Those that only `before` has are last."""
    fields = ("compiles", "seconds")
    now = with_top_folders(cost["folders"])
    then = with_top_folders(before["folders"]) if before else {}
    names = list(now) + [name for name in then if name not in now]
    rows = [(name, _values(now.get(name), fields),
             _values(then.get(name), fields)) for name in names]
    return section("folder", fields, rows, before)


def slowest(name, seconds, before):
    """Returns the table of the largest of {name: seconds}."""
    order = sorted(seconds, key=lambda key: (-seconds[key], key))[:SLOWEST]
    rows = [(key, [seconds[key]], [before.get(key) if before else None])
            for key in order]
    return section(name, ("seconds",), rows, before is not None)


def times(cost):
    """Returns the times of the whole build, in sentences."""
    text = ["wall time %.1f s" % cost["wall_seconds"]]
    if cost["before_actions_seconds"] is not None:
        text[0] += ", of which %.1f s before the first action" % (
            cost["before_actions_seconds"])
    cpu = cost["cpu_seconds"]
    if cpu:
        text.append("CPU time %.1f s of processes that Bazel started, %.1f s of "
                    "Bazel itself" % (cpu["processes"], cpu["bazel"]))
    return text


def title(cost):
    """Returns the command of the build and its number of cores."""
    words = "bazel " + cost["command"] if cost["command"] else "a profile"
    if cost["cores"]:
        words += ", %d core%s" % (cost["cores"], "s" * (cost["cores"] != 1))
    return words


def notes(cost):
    """Returns remarks that matter when numbers are compared."""
    text = [NOTE]
    if cost["from_cache"]:
        text.append("A cache answered %d of these actions: they were not run."
                    % cost["from_cache"])
    if cost["merged_events"]:
        text.append("The profile is slim: it has merged %d short events, and "
                    "actions among them are not counted."
                    % cost["merged_events"])
    return text


def table(cost, before=None):
    """Returns the whole table as text."""
    blocks = []
    for name, side in (("before: ", before), ("now: ", cost)):
        if side:
            blocks.append([(name if before else "") + title(side)]
                          + times(side))
    blocks.append(kinds(cost, before))
    if cost["folders"]:
        blocks.append(folders(cost, before))
    if cost["sources"]:
        blocks.append(slowest("slowest sources", cost["sources"],
                              before and before["sources"]))
    if cost["kinds"][TESTS]["number"]:
        blocks.append(slowest("slowest tests", cost["tests"],
                              before and before["tests"]))
    blocks.append(notes(cost))
    return "\n\n".join("\n".join(block) for block in blocks)
