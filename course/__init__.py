"""What only this site has."""
