"""Pictures as SVG, made on the server: pure functions of what was recorded. Colours are the stylesheet's."""
