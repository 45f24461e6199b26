# A scheduled `cppmill retokenize` on Google Cloud: docs/how-to/google-cloud.md goes through it command by command.

terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 8.0"
    }
  }
}

provider "google" {
  project = var.project
  region  = var.region
}
