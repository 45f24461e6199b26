#!/bin/sh
# Carries out one run as a job array: each task is a peer. SOURCES and OUT are on storage that all nodes share, or s3://…
#     SOURCES=/shared/src OUT=/shared/run sbatch --array=0-7 deploy/peers/slurm.sh
# What follows the script's name are further options of `cppmill run`. docs/how-to/peers.md has the rest.
#SBATCH --job-name=cppmill
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --requeue
#SBATCH --open-mode=append
set -eu
: "${CPPMILL:=cppmill}" "${SLURM_ARRAY_TASK_MIN:=0}" "${SLURM_CPUS_PER_TASK:=1}"
exec "$CPPMILL" run "$SOURCES" --out "$OUT" --threads "$SLURM_CPUS_PER_TASK" \
    --peer "$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN))/$SLURM_ARRAY_TASK_COUNT" "$@"
