"""Who owns which field of an object, and server-side apply, which goes by it."""
