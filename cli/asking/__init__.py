"""What `graphmend ask` asks about, with which key, and how the answers are shown."""
