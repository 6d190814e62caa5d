#!/bin/bash
# Half a minute of trials with random faults; at least some rounds on a slow
# machine.
exec tools/chaos --trainer=tools/trainer --seed=1 --seconds=30 --rounds-min=4
