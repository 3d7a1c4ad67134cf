"""The decisions about one PodGroup: create it, guard it by a finalizer, or delete it."""
