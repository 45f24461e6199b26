"""The image of Dataflow's workers: built by buildah on a base made here or on Beam's own, and started as a pool."""
