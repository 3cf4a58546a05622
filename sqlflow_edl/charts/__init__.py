"""Charts as SVG, for the page and for notebooks."""
