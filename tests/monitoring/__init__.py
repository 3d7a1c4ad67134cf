"""What the controller tells: traces, metrics, alerts, dashboard."""
