"""Files from the person's own machine, whatever their size."""

from explorer.ui.upload.upload import FileUpload

__all__ = ["FileUpload"]
