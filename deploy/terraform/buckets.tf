# The store has the versions of the dataset. What a run replaces or deletes stays restorable for some days; instead of
# soft delete, which would keep it for longer than that.
resource "google_storage_bucket" "store" {
  name                        = "${var.project}-cppmill-store"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  versioning {
    enabled = true
  }

  soft_delete_policy {
    retention_duration_seconds = 0
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      days_since_noncurrent_time = var.replaced_days
    }
  }
}

# What jobs stage, and nothing that is needed after them.
resource "google_storage_bucket" "temporary" {
  name                        = "${var.project}-cppmill-temporary"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true

  soft_delete_policy {
    retention_duration_seconds = 0
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      age = var.temporary_days
    }
  }
}

# The template names the image that the launcher runs. So workers may not write here, and the launcher may only read.
resource "google_storage_bucket" "templates" {
  name                        = "${var.project}-cppmill-templates"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true
}
