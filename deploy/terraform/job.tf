# What is run, for either launcher: the parameters of the template.

locals {
  is_template     = var.launcher == "template"
  metadata        = jsondecode(file("${path.module}/../dataflow/metadata.json"))
  parameter_names = local.metadata.parameters[*].name
  secret          = one(google_secret_manager_secret.s3[*].id)
  store           = "${google_storage_bucket.store.url}/cpp"
  temporary       = google_storage_bucket.temporary.url

  # The jobs of the stages: other machines and another account than the launcher's.
  beam_options = concat(
    [
      "--service_account_email=${google_service_account.worker.email}",
      "--machine_type=${var.worker_machine.machine_type}",
      "--max_num_workers=${var.worker_machine.max_workers}",
      "--experiments=no_use_multiple_sdk_containers",
    ],
    var.subnetwork == null ? [] : ["--subnetwork=${var.subnetwork}", "--no_use_public_ips"],
  )

  # The parameters of the template.
  parameters = merge(
    {
      command      = "retokenize"
      sources      = join(";", var.sources)
      store        = local.store
      keep         = tostring(var.keep)
      threads      = tostring(var.worker_machine.threads)
      beam_options = join(" ", local.beam_options)
    },
    local.secret == null ? {} : { s3_secret = local.secret },
    var.options,
  )

  # The template's own job: one machine, the launcher.
  launch = {
    launchParameter = {
      jobName              = "cppmill-retokenize"
      containerSpecGcsPath = "${google_storage_bucket.templates.url}/${google_storage_bucket_object.template.name}"
      parameters           = merge(local.parameters, { sdk_container_image = var.image })
      environment = merge(
        {
          serviceAccountEmail = google_service_account.launcher.email
          machineType         = var.launcher_machine.machine_type
          tempLocation        = "${local.temporary}/temp"
          stagingLocation     = "${local.temporary}/staging"
        },
        var.subnetwork == null ? {} : { subnetwork = var.subnetwork, ipConfiguration = "WORKER_IP_PRIVATE" },
      )
    }
  }
}
