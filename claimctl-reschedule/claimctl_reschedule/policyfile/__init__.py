"""Policy files of the descheduler: read, checked and translated."""
