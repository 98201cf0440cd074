"""What `graphmend ask` asks about, and how the answers are shown."""
