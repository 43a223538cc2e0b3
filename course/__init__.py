"""The parts of this site that the library lacks: the guide of its course, and extensions that lighten its pages."""
