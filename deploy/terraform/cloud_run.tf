# The launcher as a Cloud Run job: the same image, and the parameters of the template.

locals {
  # What the template's job has from the service is given here.
  of_the_job = {
    project             = var.project
    region              = var.region
    temp_location       = "${local.temporary}/temp"
    staging_location    = "${local.temporary}/staging"
    sdk_container_image = var.image
  }
}

resource "google_cloud_run_v2_job" "launcher" {
  count = local.is_template ? 0 : 1

  name                = "cppmill-retokenize"
  location            = var.region
  deletion_protection = false

  template {
    template {
      service_account = google_service_account.launcher.email
      timeout         = "${var.launcher_machine.timeout_seconds}s"
      max_retries     = 3

      containers {
        image   = var.image
        command = ["python", "/template/scheduled.py"]
        args    = [for name, value in merge(local.parameters, local.of_the_job) : "--${name}=${value}"]

        resources {
          limits = { cpu = var.launcher_machine.cpu, memory = var.launcher_machine.memory }
        }
      }
    }
  }
}

resource "google_cloud_run_v2_job_iam_member" "launcher_starts_it" {
  count = local.is_template ? 0 : 1

  name     = google_cloud_run_v2_job.launcher[0].name
  location = var.region
  role     = "roles/run.invoker"
  member   = google_service_account.launcher.member
}

resource "google_cloud_scheduler_job" "cloud_run" {
  count = local.is_template ? 0 : 1

  name        = "cppmill-retokenize"
  description = "Starts the Cloud Run job, which makes a new version of the dataset if the sources have changed"
  schedule    = var.schedule
  time_zone   = var.time_zone

  http_target {
    http_method = "POST"
    uri         = "https://run.googleapis.com/v2/${google_cloud_run_v2_job.launcher[0].id}:run"

    oauth_token {
      service_account_email = google_service_account.launcher.email
    }
  }
}
