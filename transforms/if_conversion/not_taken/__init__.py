"""What keeps a side harmless where it is evaluated although it is not taken."""
