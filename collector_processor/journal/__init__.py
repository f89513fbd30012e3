"""Accepted requests on the disk, before they are acknowledged."""
