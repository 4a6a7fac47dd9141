"""One file per pattern and nothing else; `registry` of matching walks this folder."""
