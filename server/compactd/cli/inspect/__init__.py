"""The analysis behind `compactd inspect`: what uses the tokens, as text, SVG and web page."""
