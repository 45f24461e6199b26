variable "project" {
  description = "Id of the Google Cloud project."
  type        = string
}

variable "region" {
  description = "Region of the buckets, the jobs and the schedule."
  type        = string
}

variable "image" {
  description = "Image that `make image BASE=beam` built, pushed to the repository `cppmill` of this project and region."
  type        = string

  validation {
    condition     = startswith(var.image, "${var.region}-docker.pkg.dev/${var.project}/cppmill/")
    error_message = "It takes REGION-docker.pkg.dev/PROJECT/cppmill/NAME:TAG, with the project and region given here."
  }
}

variable "sources" {
  description = "Sources, as gs:// and s3:// URLs."
  type        = list(string)

  validation {
    condition     = length(var.sources) > 0 && alltrue([for source in var.sources : can(regex("^(gs|s3)://[^;]+$", source))])
    error_message = "It takes one URL or more, gs:// or s3://, without semicolons."
  }
}

variable "source_buckets" {
  description = "Buckets of sources that both accounts may read. Not needed for public buckets."
  type        = list(string)
  default     = []
}

variable "launcher" {
  description = "Where the launcher runs: template, as a small Dataflow job; cloud-run, as a Cloud Run job."
  type        = string
  default     = "template"

  validation {
    condition     = contains(["template", "cloud-run"], var.launcher)
    error_message = "It takes template or cloud-run."
  }
}

variable "schedule" {
  description = "When it runs, in cron format; the default is Sundays at 3."
  type        = string
  default     = "0 3 * * 0"
}

variable "time_zone" {
  description = "Time zone of the schedule."
  type        = string
  default     = "Etc/UTC"
}

variable "options" {
  description = "Further parameters of `cppmill retokenize`, by the names of deploy/dataflow/metadata.json: { profile = \"demo\" }."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(setsubtract(keys(var.options), local.parameter_names)) == 0
    error_message = "No such parameter: ${join(", ", setsubtract(keys(var.options), local.parameter_names))}."
  }
}

variable "keep" {
  description = "How many versions to keep."
  type        = number
  default     = 3
}

variable "s3_secret" {
  description = "Whether to make a secret for the credentials of s3://, which launcher and workers may read."
  type        = bool
  default     = false
}

variable "launcher_machine" {
  description = "Size of the launcher, which plans, builds and submits. Machine type is for the template, the rest for Cloud Run."
  type        = object({ machine_type = string, cpu = string, memory = string, timeout_seconds = number })
  default     = { machine_type = "n2-highmem-4", cpu = "8", memory = "32Gi", timeout_seconds = 86400 }
}

variable "worker_machine" {
  description = "Machine type of the workers, its number of vCPUs, and the largest number of workers."
  type        = object({ machine_type = string, threads = number, max_workers = number })
  default     = { machine_type = "n2-standard-4", threads = 4, max_workers = 16 }
}

variable "subnetwork" {
  description = "Subnetwork of launcher and workers, as regions/REGION/subnetworks/NAME, without public addresses; null for the default network, with them."
  type        = string
  default     = null
}

variable "temporary_days" {
  description = "Days after which staged files are deleted. It must be longer than any job runs."
  type        = number
  default     = 14
}

variable "replaced_days" {
  description = "Days for which replaced or deleted objects of the store can be restored."
  type        = number
  default     = 7
}
