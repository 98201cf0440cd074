"""What a mended program may import. Knows torch and nothing else of ours."""
