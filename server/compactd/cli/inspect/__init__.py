"""Pictures of a context window as files: an SVG, and a page whose plots can be hovered."""
