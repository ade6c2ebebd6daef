"""A scripted stand-in for the model services that AI CLIs talk to, so that their real dialogs can be walked offline.

The newest user text names a scene ("lab:bash", "lab:slow=5").  No state is kept: which move of the scene is due
follows from how many tool results came back after it.
"""

from tests.real_tools.mockmodel.scene import Call, Request, Turn, play
from tests.real_tools.mockmodel.server import MockModel

__all__ = ["Call", "MockModel", "Request", "Turn", "play"]
