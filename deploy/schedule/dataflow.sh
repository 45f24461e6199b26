#!/bin/sh
# Retokenizes on Dataflow: this process plans and submits, the service's workers run the units. For cron, a timer or Airflow on
# a small machine; what the variables are, and what the service needs, is in docs/how-to/dataflow.md.
# The first version is made by hand, because only it takes a tokenizer: retokenize SOURCES --store STORE --tokenizer DIR
# (or --profile and --vocab-size, to build one).
set -eu
: "${CPPMILL:=cppmill}" "${KEEP:=3}" "${THREADS:=4}" "${MACHINE_TYPE:=n2-standard-4}" "${MAX_WORKERS:=64}"
exec "$CPPMILL" retokenize "$SOURCES" --store "$STORE" --keep "$KEEP" --engine dataflow --threads "$THREADS" -- \
    --project="$PROJECT" --region="$REGION" --temp_location="$TEMP_LOCATION" --sdk_container_image="$IMAGE" \
    --machine_type="$MACHINE_TYPE" --max_num_workers="$MAX_WORKERS" --experiments=no_use_multiple_sdk_containers
