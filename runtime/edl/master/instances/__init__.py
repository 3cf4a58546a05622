"""Workers and parameter servers as the master manages them: start, replace, scale."""
