"""Checks event files with TensorBoard's own reader.

    read_events.py FOLDER 'train/loss:10,20,30' 'eval/loss:20,30'

The scalars of the folder must have exactly these tags, at these steps.
"""

import sys

from tensorboard.backend.event_processing import event_accumulator


def main():
    folder, wanted = sys.argv[1], sys.argv[2:]
    events = event_accumulator.EventAccumulator(
        folder, size_guidance={event_accumulator.TENSORS: 0,
                               event_accumulator.SCALARS: 0})
    events.Reload()
    found = ["%s:%s" % (tag, ",".join(str(e.step) for e in events.Scalars(tag)))
             for tag in sorted(events.Tags()["scalars"])]
    if found != sorted(wanted):
        sys.exit("found %s, wanted %s" % (found, sorted(wanted)))


main()
