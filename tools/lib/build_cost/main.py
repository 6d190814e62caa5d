"""Prints the cost of a build; tools/buildcost runs it, and has the help."""

import argparse
import json
import sys

import actions
import cost
import table


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", help="JSON profile of Bazel")
    parser.add_argument("--root", default=".", help="the tree that was built")
    parser.add_argument("--command", help="the command of Bazel")
    parser.add_argument("--cores", type=int)
    parser.add_argument("--stat", help="copy of the server's /proc/PID/stat")
    parser.add_argument("--before", help="JSON of an earlier run")
    parser.add_argument("--json", help="where the JSON goes; - prints it alone")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    before = cost.read_cost(arguments.before) if arguments.before else None
    now = cost.cost_of(
        actions.read_profile(arguments.profile, arguments.root),
        arguments.command, arguments.cores,
        cost.read_cpu(arguments.stat) if arguments.stat else None)
    text = json.dumps(now, indent=1)
    if arguments.json == "-":
        print(text)
        return
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            out.write(text + "\n")
    print(table.table(now, before))


if __name__ == "__main__":
    try:
        main()
    except (OSError, actions.ProfileError) as problem:
        sys.exit("buildcost: %s" % problem)
