"""PodGroups that share a claim: members, life, and components that treat them differently."""
