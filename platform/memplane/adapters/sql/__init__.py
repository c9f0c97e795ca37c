"""What both databases share: tables, repositories, unit of work."""
