"""Other shapes of an answer: Table and PartialObjectMetadata."""
