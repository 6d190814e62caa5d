#!/bin/bash
# Two nodes, one process on each. Once before, in the folder of the job, which
# all nodes must see:
#
#   trainer certs --dir=certs
#
#SBATCH --job-name=glyphs
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=1:00:00
# SIGTERM two minutes before the end: the job saves and stops.
#SBATCH --signal=TERM@120

# -K1: when one process fails, Slurm ends the others.
exec srun -K1 trainer train --config=examples/glyphs/glyphs.toml \
    --certs=certs/node --set checkpoint.dir=glyphs_checkpoints --resume
