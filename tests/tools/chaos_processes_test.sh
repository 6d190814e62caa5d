#!/bin/bash
# A minute of trials with random faults over processes; at least some rounds
# on a slow machine.
exec tools/chaos --trainer=tools/trainer --processes=4 --seed=1 --seconds=60 \
  --rounds-min=4
