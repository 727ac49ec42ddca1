"""What Django finds of this app by itself."""
