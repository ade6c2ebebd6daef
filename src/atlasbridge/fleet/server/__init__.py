"""The fleet server: a web application on PostgreSQL. It proposes decisions; each machine's hub decides."""
