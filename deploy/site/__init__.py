"""The documentation site: its pages, from docs/, other places and generated ones, and their build by Zensical."""
