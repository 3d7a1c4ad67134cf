"""What a ClaimReservation's status and conditions say."""
