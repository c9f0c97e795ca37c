"""Whether two texts say the same, contradict each other, or may both hold."""
