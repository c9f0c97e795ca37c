"""Who is calling, and which users are one."""
