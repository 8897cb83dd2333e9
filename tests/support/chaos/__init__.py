"""A suite under random faults and edits, and what has to be true of it afterwards."""
