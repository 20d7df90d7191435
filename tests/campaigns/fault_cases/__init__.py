"""The faults of tests/campaigns/faults.py."""
