#!/bin/bash
# Runs two nodes with one process each. Before the first run, in the folder of
# the job, which all nodes must share:
#
#   trainer certs --dir=certs
#
#SBATCH --job-name=glyphs
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=1:00:00
# Sends SIGTERM two minutes before the time limit: the job saves and stops.
#SBATCH --signal=TERM@120

# -K1: when one process fails, Slurm ends the others.
exec srun -K1 trainer train --config=examples/glyphs/glyphs.toml \
    --certs=certs/node --set checkpoint.dir=glyphs_checkpoints --resume
