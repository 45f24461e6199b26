# `terraform test` plans every variant with a provider that asks nobody, so it needs no account.

mock_provider "google" {
  override_resource {
    target = google_service_account.launcher
    values = {
      name   = "projects/my-project/serviceAccounts/cppmill-launcher@my-project.iam.gserviceaccount.com"
      email  = "cppmill-launcher@my-project.iam.gserviceaccount.com"
      member = "serviceAccount:cppmill-launcher@my-project.iam.gserviceaccount.com"
    }
  }

  override_resource {
    target = google_service_account.worker
    values = {
      name   = "projects/my-project/serviceAccounts/cppmill-worker@my-project.iam.gserviceaccount.com"
      email  = "cppmill-worker@my-project.iam.gserviceaccount.com"
      member = "serviceAccount:cppmill-worker@my-project.iam.gserviceaccount.com"
    }
  }

  override_resource {
    target = google_secret_manager_secret.s3
    values = { id = "projects/my-project/secrets/cppmill-s3" }
  }
}

variables {
  project        = "my-project"
  region         = "europe-west3"
  image          = "europe-west3-docker.pkg.dev/my-project/cppmill/worker:1"
  sources        = ["gs://my-sources/*.tar.zst", "s3://others/code"]
  source_buckets = ["my-sources"]
  s3_secret      = true
}

run "the_schedule_launches_the_template" {
  assert {
    condition = jsondecode(base64decode(google_cloud_scheduler_job.template[0].http_target[0].body)) == {
      launchParameter = {
        jobName              = "cppmill-retokenize"
        containerSpecGcsPath = "${google_storage_bucket.templates.url}/cppmill.json"
        parameters           = merge(local.parameters, { sdk_container_image = var.image })
        environment = {
          serviceAccountEmail = google_service_account.launcher.email
          machineType         = "n2-highmem-4"
          tempLocation        = "${google_storage_bucket.temporary.url}/temp"
          stagingLocation     = "${google_storage_bucket.temporary.url}/staging"
        }
      }
    }
    error_message = "The schedule sends something else than the launch of the template."
  }

  assert {
    condition     = local.parameters.sources == "gs://my-sources/*.tar.zst;s3://others/code"
    error_message = "Sources are not separated by semicolons."
  }

  assert {
    condition     = local.parameters.s3_secret == google_secret_manager_secret.s3[0].id
    error_message = "The jobs do not name the secret."
  }

  assert {
    condition     = length(setsubtract(keys(local.parameters), local.parameter_names)) == 0
    error_message = "The template has no such parameter: ${join(", ", setsubtract(keys(local.parameters), local.parameter_names))}."
  }

  assert {
    condition     = length(google_cloud_run_v2_job.launcher) == 0 && length(google_cloud_scheduler_job.cloud_run) == 0
    error_message = "A Cloud Run job is made too."
  }
}

run "the_schedule_starts_the_cloud_run_job" {
  variables {
    launcher   = "cloud-run"
    subnetwork = "regions/europe-west3/subnetworks/default"
  }

  assert {
    condition     = contains(google_cloud_run_v2_job.launcher[0].template[0].template[0].containers[0].args, "--command=retokenize")
    error_message = "The job does not get the parameters of the template."
  }

  assert {
    condition     = endswith(local.parameters.beam_options, "--subnetwork=regions/europe-west3/subnetworks/default --no_use_public_ips")
    error_message = "Workers are not in the subnetwork."
  }

  assert {
    condition     = keys(google_service_account_iam_member.launcher_starts_machines) == ["worker"]
    error_message = "The launcher may act as more than the workers."
  }

  assert {
    condition     = !contains([for role in values(google_project_iam_member.of_jobs) : role.role if role.member == google_service_account.launcher.member], "roles/dataflow.worker")
    error_message = "The launcher has the role of a machine of Dataflow, which a Cloud Run job does not need."
  }
}

run "without_s3_there_is_no_secret" {
  variables {
    s3_secret = false
    options   = { profile = "demo", drop_secrets = "true" }
  }

  assert {
    condition     = length(google_secret_manager_secret.s3) == 0 && !contains(keys(local.parameters), "s3_secret")
    error_message = "A secret is made or named."
  }

  assert {
    condition     = local.parameters.profile == "demo"
    error_message = "The options are no parameters."
  }
}

run "an_option_that_there_is_not_is_refused" {
  command = plan

  variables {
    options = { vocab_sise = "16384" }
  }

  expect_failures = [var.options]
}

run "an_image_of_another_project_is_refused" {
  command = plan

  variables {
    image = "docker.io/library/python:3.11"
  }

  expect_failures = [var.image]
}
