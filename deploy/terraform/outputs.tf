output "store" {
  description = "Where the versions of the dataset are."
  value       = local.store
}

output "schedule" {
  description = "The schedule; `gcloud scheduler jobs run` starts it at once."
  value       = local.is_template ? google_cloud_scheduler_job.template[0].id : google_cloud_scheduler_job.cloud_run[0].id
}

output "secret" {
  description = "The secret for the credentials of s3://, if there is one."
  value       = local.secret
}
