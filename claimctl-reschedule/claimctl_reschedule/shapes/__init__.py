"""What only rescheduling reads or writes of Kubernetes' JSON, as typed structs."""
