# The template in the bucket, as `gcloud dataflow flex-template build` would write it.
resource "google_storage_bucket_object" "template" {
  bucket       = google_storage_bucket.templates.name
  name         = "cppmill.json"
  content_type = "application/json"

  content = jsonencode({
    image    = var.image
    sdkInfo  = { language = "PYTHON" }
    metadata = local.metadata
  })
}

# The name of a job that is still running is refused, so no two run at once.
resource "google_cloud_scheduler_job" "template" {
  count = local.is_template ? 1 : 0

  name        = "cppmill-retokenize"
  description = "Starts the template, which makes a new version of the dataset if the sources have changed"
  schedule    = var.schedule
  time_zone   = var.time_zone

  http_target {
    http_method = "POST"
    uri         = "https://dataflow.googleapis.com/v1b3/projects/${var.project}/locations/${var.region}/flexTemplates:launch"
    headers     = { "Content-Type" = "application/json" }
    body        = base64encode(jsonencode(local.launch))

    oauth_token {
      service_account_email = google_service_account.launcher.email
    }
  }
}
