"""The version of topos, as code: an agent that was started from newer files than its server must be told apart."""

from typing import Final

VERSION: Final = "0.1.0"
