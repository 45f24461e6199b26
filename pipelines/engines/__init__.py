"""The engines that a pipeline runs on: what each needs, which of Beam's options it sets, and what its workers do."""
