"""Retokenizes each Sunday at 3 in Airflow, then checks the new version. Copy it into the folder of DAGs.

The first version is made by hand, because only it takes a tokenizer: cppmill retokenize SOURCES --store STORE
--tokenizer DIR (or --profile and --vocab-size, to build one). The store may be on an object store.

The places are taken from the environment of the scheduler and the workers. A run with nothing to do (exit code 10) is
skipped, and so is what follows it. If another run is at work (11), the task fails and is retried after half an hour.
With a threshold of drift, 12 means that there is a version, and a retry would hide it: see "Recipes" in
docs/how-to/scheduling.md.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

PLACES = {
    "CPPMILL": os.environ.get("CPPMILL", "/opt/cppmill/bin/cppmill"),
    "SOURCES": os.environ.get("CPPMILL_SOURCES", "/srv/cppmill/sources"),
    "STORE": os.environ.get("CPPMILL_STORE", "/srv/cppmill/store"),
    "KEEP": os.environ.get("CPPMILL_KEEP", "3"),
}

with DAG(
    dag_id="cppmill_retokenize",
    description="New version of the tokenized dataset",
    schedule="0 3 * * 0",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=30)},
    tags=["cppmill"],
):
    retokenize = BashOperator(
        task_id="retokenize",
        bash_command='"$CPPMILL" retokenize "$SOURCES" --store "$STORE" --keep "$KEEP"',
        env=PLACES,
        append_env=True,
        skip_on_exit_code=10,
    )
    verify = BashOperator(
        task_id="verify",
        bash_command='"$CPPMILL" verify "$STORE/current"',
        env=PLACES,
        append_env=True,
    )
    retokenize >> verify
