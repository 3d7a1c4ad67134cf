"""Random users of sticky claims, and a judge of the device that each ordinal gets."""
