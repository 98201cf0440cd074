"""Makes findings from verdicts, and applies suppression comments to them."""
