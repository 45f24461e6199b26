# Two accounts. The launcher plans, builds, submits jobs, and is who the schedule acts as. Workers run units.

resource "google_service_account" "launcher" {
  account_id   = "cppmill-launcher"
  display_name = "Starts the jobs of cppmill"
}

resource "google_service_account" "worker" {
  account_id   = "cppmill-worker"
  display_name = "Runs the units of cppmill"
}

locals {
  accounts = { launcher = google_service_account.launcher, worker = google_service_account.worker }

  project_roles = merge(
    {
      "launcher submits and watches jobs" = { account = "launcher", role = "roles/dataflow.developer" }
      "worker runs jobs"                  = { account = "worker", role = "roles/dataflow.worker" }
    },
    local.is_template ? { "launcher runs the template's job" = { account = "launcher", role = "roles/dataflow.worker" } } : {},
  )

  bucket_roles = merge(
    {
      "launcher writes the store"    = { account = "launcher", bucket = google_storage_bucket.store.name, role = "roles/storage.objectUser" }
      "worker writes the store"      = { account = "worker", bucket = google_storage_bucket.store.name, role = "roles/storage.objectUser" }
      "launcher stages"              = { account = "launcher", bucket = google_storage_bucket.temporary.name, role = "roles/storage.objectUser" }
      "launcher looks at it"         = { account = "launcher", bucket = google_storage_bucket.temporary.name, role = "roles/storage.legacyBucketReader" }
      "worker stages"                = { account = "worker", bucket = google_storage_bucket.temporary.name, role = "roles/storage.objectUser" }
      "launcher reads the templates" = { account = "launcher", bucket = google_storage_bucket.templates.name, role = "roles/storage.objectViewer" }
    },
    { for pair in setproduct(keys(local.accounts), var.source_buckets) : "${pair[0]} reads ${pair[1]}" => { account = pair[0], bucket = pair[1], role = "roles/storage.objectViewer" } },
  )

  # The launcher starts jobs whose machines are workers, or, of the template's own job, launchers.
  acting_as = local.is_template ? toset(["worker", "launcher"]) : toset(["worker"])
}

resource "google_project_iam_member" "of_jobs" {
  for_each = local.project_roles

  project = var.project
  role    = each.value.role
  member  = local.accounts[each.value.account].member
}

resource "google_storage_bucket_iam_member" "of_buckets" {
  for_each = local.bucket_roles

  bucket = each.value.bucket
  role   = each.value.role
  member = local.accounts[each.value.account].member
}

resource "google_service_account_iam_member" "launcher_starts_machines" {
  for_each = local.acting_as

  service_account_id = local.accounts[each.key].name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.launcher.member
}

resource "google_artifact_registry_repository_iam_member" "of_the_image" {
  for_each = local.accounts

  location   = var.region
  repository = "cppmill"
  role       = "roles/artifactregistry.reader"
  member     = each.value.member
}

# The secret alone: its content is added with gcloud, so that it is in no plan and no state of Terraform.
resource "google_secret_manager_secret" "s3" {
  count = var.s3_secret ? 1 : 0

  secret_id = "cppmill-s3"

  replication {
    user_managed {
      replicas {
        location = var.region
      }
    }
  }
}

resource "google_secret_manager_secret_iam_member" "of_s3" {
  for_each = var.s3_secret ? local.accounts : {}

  secret_id = google_secret_manager_secret.s3[0].id
  role      = "roles/secretmanager.secretAccessor"
  member    = each.value.member
}
