"""Facts, procedures and summaries, extracted from what people say."""
