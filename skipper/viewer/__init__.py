"""Pages on which people see agents think."""
