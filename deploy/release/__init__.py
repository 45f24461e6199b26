"""What a release has beside its wheels: the licences of what is linked into the native core, and bills of materials."""
