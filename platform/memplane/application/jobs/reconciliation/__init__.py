"""The job `reconcile`: derived data compared with what it derives from, and corrected."""
