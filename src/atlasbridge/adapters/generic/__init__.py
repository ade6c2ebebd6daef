"""Any interactive program: how programs in general ask."""
